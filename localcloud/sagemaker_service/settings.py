"""The service's settings: its port, its state folder, the endpoint of the other AWS services, and
its limits.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from localcloud.home import ENVIRONMENTS
from traindyno.core.suite.job_time import STOP_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    port: int
    state_folder: Path
    aws_endpoint: str
    cores: tuple[int, ...]
    # Each request must name it; without one no request is answered.
    access_key_id: str = field(default="", repr=False)
    environments_folder: Path = ENVIRONMENTS
    # Otherwise local.* jobs run on this machine.
    simulates_all: bool = False
    checkpoint_sync_seconds: float = 2.0
    stop_grace_seconds: float = float(STOP_SECONDS)
    # The memory of all hosts of a job on local.cpu together; None for most of this machine's.
    local_memory_gib: float | None = None
    granted_quota: float | None = None
    prices: Mapping[str, Decimal] = field(default_factory=dict)
    traces_folder: Path | None = None
    speed_up: float = 600.0
    jump_when_quiet_seconds: float = 0.1
