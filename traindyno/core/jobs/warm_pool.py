"""The instances that a job left for a next one: for how long they were kept, and who took them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from traindyno.core.errors import TraindynoError


class UnknownWarmPoolStatus(TraindynoError):
    """SageMaker answered a status of a warm pool that this version does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmPool:
    """``job_name`` is the job that left it. ``retained_seconds`` are billed, of each instance, while nobody used it."""

    job_name: str
    is_over: bool
    retained_seconds: float
    reused_by: str | None


def read_warm_pool(job: Mapping[str, Any]) -> WarmPool | None:
    """From a job's description, or its entry in a list of jobs; None if it keeps no instances."""
    found = job.get("WarmPoolStatus")
    if found is None or found["Status"] == "InUse":
        return None
    return WarmPool(
        job_name=job["TrainingJobName"],
        is_over=_is_over(job["TrainingJobName"], found["Status"]),
        retained_seconds=float(found.get("ResourceRetainedBillableTimeInSeconds") or 0),
        reused_by=found.get("ReusedByJob"),
    )


def _is_over(job_name: str, status: str) -> bool:
    match status:
        case "Available":
            return False
        case "Reused" | "Terminated":
            return True
    raise UnknownWarmPoolStatus(f"job {job_name}: unknown WarmPoolStatus {status}")
