"""The instances that a job left for a next one: for how long they were kept, and who took them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmPool:
    """``job_name`` is the job that left it. ``retained_seconds`` are billed, of each instance, while nobody used it."""

    job_name: str
    is_over: bool
    retained_seconds: float
    reused_by: str | None
