"""How a described training job ended, what it billed, and whether another attempt is due."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from traindyno.core.errors import CapacityUnavailable, NextAttempt, TraindynoError
from traindyno.core.jobs.failure_reasons import Meaning, read_failure_reason
from traindyno.core.jobs.job_phases import JobPhase, epoch_seconds, read_phases
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.jobs.warm_pool import WarmPool, read_warm_pool


class UnknownJobStatus(TraindynoError):
    """SageMaker answered a status that this version does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnd:
    """Exactly one of ``outcome`` and ``next_attempt`` is set. Billable seconds are wall clock, of each instance.

    ``instance_type`` is None where SageMaker had not yet selected one of several.
    ``may_keep_warm_seconds``: for how long its instances may be kept, and billed, after it.
    """

    job_name: str
    outcome: Outcome | None
    next_attempt: type[NextAttempt] | None
    message: str
    billable_seconds: int | None
    training_seconds: int | None
    instance_type: str | None
    instance_count: int
    created_at: float
    ended_at: float | None
    phases: tuple[JobPhase, ...]
    interruptions: int
    may_keep_warm_seconds: int
    warm_pool: WarmPool | None


def has_ended(job: Mapping[str, Any]) -> bool:
    match job["TrainingJobStatus"]:
        case "Completed" | "Failed" | "Stopped" | "Deleting":
            return True
        case "InProgress" | "Stopping":
            return False
        case status:
            raise UnknownJobStatus(f"job {job['TrainingJobName']}: unknown TrainingJobStatus {status}")


def read_job_end(job: Mapping[str, Any], *, stopped_for: Outcome | None = None) -> JobEnd:
    """``stopped_for``: why this lab asked the job to stop, where it did; without it a stop was a person's."""
    if not has_ended(job):
        raise ValueError(f"job {job['TrainingJobName']} is {job['TrainingJobStatus']}: it has not ended")
    meaning, message = _meaning(job, stopped_for)
    resources = job["ResourceConfig"]
    transitions = job.get("SecondaryStatusTransitions", [])
    ended_at = job.get("TrainingEndTime") or job.get("LastModifiedTime")
    return JobEnd(
        job_name=job["TrainingJobName"],
        outcome=meaning if isinstance(meaning, Outcome) else None,
        next_attempt=None if isinstance(meaning, Outcome) else meaning,
        message=message,
        billable_seconds=_billable_seconds(job),
        training_seconds=job.get("TrainingTimeInSeconds"),
        instance_type=resources.get("SelectedInstanceType") or resources.get("InstanceType"),
        instance_count=resources.get("SelectedInstanceCount") or resources["InstanceCount"],
        created_at=epoch_seconds(job["CreationTime"]),
        ended_at=None if ended_at is None else epoch_seconds(ended_at),
        phases=read_phases(transitions),
        interruptions=sum(transition["Status"] == "Interrupted" for transition in transitions),
        may_keep_warm_seconds=resources.get("KeepAlivePeriodInSeconds", 0) if job.get("TrainingStartTime") else 0,
        warm_pool=read_warm_pool(job),
    )


def _meaning(job: Mapping[str, Any], stopped_for: Outcome | None) -> tuple[Meaning, str]:
    secondary = job.get("SecondaryStatus")
    match job["TrainingJobStatus"]:
        case "Completed" if secondary == "MaxRuntimeExceeded":
            return Outcome.TIMED_OUT, _time_limit_text(job)
        case "Completed":
            return Outcome.COMPLETED, ""
        case "Failed":
            return read_failure_reason(job.get("FailureReason", ""))
        case "Stopped":
            return _stopped_meaning(job, stopped_for)
        case "Deleting":
            return Outcome.STOPPED_BY_USER, "the job is being deleted"
        case status:
            raise UnknownJobStatus(f"job {job['TrainingJobName']}: {status} is no end")


def _stopped_meaning(job: Mapping[str, Any], stopped_for: Outcome | None) -> tuple[Meaning, str]:
    secondary = job.get("SecondaryStatus")
    if secondary == "MaxRuntimeExceeded":
        return Outcome.TIMED_OUT, _time_limit_text(job)
    if secondary == "MaxWaitTimeExceeded":
        return CapacityUnavailable, "spot capacity did not last for the run within its longest wait"
    if stopped_for is not None:
        return stopped_for, f"stopped by the lab: {stopped_for}"
    if _ended_in_pending(job):
        return CapacityUnavailable, "the job waited for capacity as long as it may"
    return Outcome.STOPPED_BY_USER, "stopped on request"


def _ended_in_pending(job: Mapping[str, Any]) -> bool:
    """SageMaker's own stop at MaxPendingTimeInSeconds: never started, and waited to the limit."""
    limit_seconds = job.get("StoppingCondition", {}).get("MaxPendingTimeInSeconds")
    if limit_seconds is None or job.get("TrainingStartTime") is not None:
        return False
    ended_at = job.get("TrainingEndTime") or job.get("LastModifiedTime")
    return ended_at is not None and epoch_seconds(ended_at) - epoch_seconds(job["CreationTime"]) >= limit_seconds


def _time_limit_text(job: Mapping[str, Any]) -> str:
    limit = job.get("StoppingCondition", {}).get("MaxRuntimeInSeconds", "its longest")
    return f"still running after {limit} seconds"


def _billable_seconds(job: Mapping[str, Any]) -> int | None:
    """SageMaker leaves the figure out for a job that never started, which bills nothing."""
    billable: int | None = job.get("BillableTimeInSeconds")
    if billable is None and job.get("TrainingStartTime") is None:
        return 0
    return billable
