"""The lab's settings, which are added to a suite's jobs."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

# A JSON document in a function's environment: what the person who deployed the lab decided about
# its jobs.
LAB_JOBS_VARIABLE = "LAB_JOBS"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabJobs:
    """Settings of every job of a lab.

    ``subnet_ids`` and ``security_group_ids``: both or neither. ``volume_key_arn`` encrypts the
    storage volume, ``output_key_arn`` the outputs; None: the key that AWS manages.
    ``hub_token_secrets``: the ARNs of the secrets that jobs may read. ``volume_size_gb`` is of each
    instance; types with instance storage ignore it.
    """

    subnet_ids: tuple[str, ...] = ()
    security_group_ids: tuple[str, ...] = ()
    encrypts_traffic: bool = False
    isolates_network: bool = False
    volume_key_arn: str | None = None
    output_key_arn: str | None = None
    volume_size_gb: int = 30
    tags: Mapping[str, str] = field(default_factory=dict)
    hub_token_secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """Settings of a lab that its training jobs need.

    ``images`` are the addresses of the lab's own images, by kind; another kind has AWS's stock
    image. ``seconds_between_starts`` keeps the lab below the account's limit on CreateTrainingJob;
    0 is no limit.
    """

    region: str
    role_arn: str
    results_bucket: str
    lab: str = "traindyno"
    source_s3_uri: str | None = None
    images: Mapping[str, str] = field(default_factory=dict)
    jobs: LabJobs = LabJobs()
    seconds_between_starts: float = 0.0


def read_lab_jobs(text: str) -> LabJobs:
    """Reads the JSON text that ``write_lab_jobs`` makes."""
    given: dict[str, Any] = json.loads(text)
    lists = {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
    return LabJobs(**{**given, **lists})


def write_lab_jobs(jobs: LabJobs) -> str:
    return json.dumps(asdict(jobs))
