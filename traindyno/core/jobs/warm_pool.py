"""The instances that a job kept warm: the time for which they were kept, and the job that reused them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmPool:
    """``job_name``: the job that kept it. ``retained_seconds`` are billed, for each instance, while no job used it."""

    job_name: str
    is_over: bool
    retained_seconds: float
    reused_by: str | None
