"""What the lab adds to a suite before its jobs can be submitted."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """Image addresses of None mean AWS's stock image for the kind of instance."""

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
    tags: Mapping[str, str] = field(default_factory=dict)
