"""What the lab adds to a suite before its jobs can be submitted."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """Image addresses of None mean AWS's stock image for the kind of instance.

    ``seconds_between_starts`` keeps the lab below the account's limit on CreateTrainingJob; 0 is no limit.
    """

    region: str
    role_arn: str
    results_bucket: str
    lab: str = "traindyno"
    source_s3_uri: str | None = None
    gpu_image_uri: str | None = None
    neuron_image_uri: str | None = None
    subnet_ids: tuple[str, ...] = ()
    security_group_ids: tuple[str, ...] = ()
    volume_size_gb: int = 30
    seconds_between_starts: float = 0.0
    tags: Mapping[str, str] = field(default_factory=dict)
