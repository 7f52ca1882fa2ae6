"""Reads DescribeTrainingJob's answer: whether and how a job ended, its phases, instances and bill
so far.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from traindyno.core.errors import CapacityUnavailable, ServiceFault, TraindynoError
from traindyno.core.jobs.attempt import UNBILLED_PHASES
from traindyno.core.jobs.job_end import JobEnd, JobPhase, JobPhaseName
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.planning.quotas import HeldInstances
from traindyno.sagemaker.failure_reasons import Meaning, read_failure_reason

#: How the status message of a job of the local cloud begins that waits behind another one.
QUEUED = "waiting for the machine"
SHORTAGE_TEXTS = ("insufficient capacity", "capacity error", "waiting for capacity")
PHASE_OF_STATUS = {
    "Pending": JobPhaseName.WAITING,
    "Starting": JobPhaseName.STARTING,
    "LaunchingMLInstances": JobPhaseName.STARTING,
    "PreparingTrainingStack": JobPhaseName.STARTING,
    "Restarting": JobPhaseName.STARTING,
    "Updating": JobPhaseName.STARTING,
    "Downloading": JobPhaseName.DOWNLOADING,
    "DownloadingTrainingImage": JobPhaseName.DOWNLOADING,
    "Training": JobPhaseName.TRAINING,
    "Interrupted": JobPhaseName.INTERRUPTED,
    "Uploading": JobPhaseName.UPLOADING,
    "Stopping": JobPhaseName.STOPPING,
}
INSTANT_STATUSES = ("Completed", "Failed", "Stopped", "MaxRuntimeExceeded", "MaxWaitTimeExceeded")


def read_held_instances(job: Mapping[str, Any]) -> Iterator[HeldInstances]:
    """A job whose instance type is not selected yet holds none, and neither does a job that has
    ended, nor one that SageMaker places itself (a serverless job has no ResourceConfig).
    """
    resources = job.get("ResourceConfig", {})
    is_working = job["TrainingJobStatus"] in {"InProgress", "Stopping"}
    is_kept_warm = job.get("WarmPoolStatus", {}).get("Status") == "Available"
    if not is_working and not is_kept_warm:
        return
    groups = resources.get("InstanceGroups") or [
        {
            "InstanceType": resources.get("SelectedInstanceType") or resources.get("InstanceType"),
            "InstanceCount": resources.get("SelectedInstanceCount")
            or resources.get("InstanceCount", 0),
        }
    ]
    for group in groups:
        if group["InstanceType"]:
            yield HeldInstances(
                instance_type=group["InstanceType"],
                instance_count=group["InstanceCount"],
                is_spot=bool(job.get("EnableManagedSpotTraining")),
            )


def read_job_names(page: Mapping[str, Any]) -> Iterator[str]:
    """The names of the jobs on one page of ListTrainingJobs."""
    return (job["TrainingJobName"] for job in page["TrainingJobSummaries"])


class UnknownJobStatus(TraindynoError):
    """SageMaker returned a status that this version does not know."""


def has_ended(job: Mapping[str, Any]) -> bool:
    match job["TrainingJobStatus"]:
        case "Completed" | "Failed" | "Stopped" | "Deleting":
            return True
        case "InProgress" | "Stopping":
            return False
        case status:
            raise UnknownJobStatus(
                f"job {job['TrainingJobName']}: unknown TrainingJobStatus {status}"
            )


def read_phase(job: Mapping[str, Any]) -> JobPhaseName | None:
    """The job's current phase; None if it has ended, or has a status that this version does not
    know.
    """
    return PHASE_OF_STATUS.get(job["SecondaryStatus"])


def read_wait(job: Mapping[str, Any]) -> str | None:
    """What a job waits for before it starts; None for one that doesn't."""
    message = str(_last_transition(job).get("StatusMessage") or "")
    is_short = any(text in message.lower() for text in (*SHORTAGE_TEXTS, QUEUED))
    phase = read_phase(job)
    if phase is JobPhaseName.WAITING or (phase is JobPhaseName.STARTING and is_short):
        return message or phase.value
    return None


def begun_at(job: Mapping[str, Any]) -> float | None:
    """Epoch seconds of its first status; in the local cloud, that is after its wait for the
    machine.
    """
    transitions = job.get("SecondaryStatusTransitions") or ()
    return epoch_seconds(transitions[0]["StartTime"]) if transitions else None


def _last_transition(job: Mapping[str, Any]) -> Mapping[str, Any]:
    transitions: Sequence[Mapping[str, Any]] = job.get("SecondaryStatusTransitions") or ({},)
    return transitions[-1]


def is_ending(job: Mapping[str, Any]) -> bool:
    """Whether the job is stopping or uploading: StopTrainingJob makes it no shorter."""
    return job["TrainingJobStatus"] == "Stopping" or job.get("SecondaryStatus") in (
        "Stopping",
        "Uploading",
    )


def read_job_end(job: Mapping[str, Any], *, stopped_for: Outcome | None = None) -> JobEnd:
    """How a training job ended.

    ``stopped_for`` is the reason why this lab stopped the job, if it did; without it, a person
    stopped the job.
    """
    if not has_ended(job):
        raise ValueError(
            f"job {job['TrainingJobName']} is {job['TrainingJobStatus']}: it has not ended"
        )
    meaning, message = _meaning(job, stopped_for)
    transitions = job.get("SecondaryStatusTransitions", [])
    ended_at = job.get("TrainingEndTime") or job.get("LastModifiedTime")
    return JobEnd(
        job_name=job["TrainingJobName"],
        outcome=meaning if isinstance(meaning, Outcome) else None,
        next_attempt=None if isinstance(meaning, Outcome) else meaning,
        message=message,
        billable_seconds=_billable_seconds(job),
        training_seconds=job.get("TrainingTimeInSeconds"),
        instance_type=job["ResourceConfig"].get("InstanceType"),
        ended_at=None if ended_at is None else epoch_seconds(ended_at),
        phases=read_phases(transitions),
        image_uri=job.get("AlgorithmSpecification", {}).get("TrainingImage"),
    )


def _meaning(job: Mapping[str, Any], stopped_for: Outcome | None) -> tuple[Meaning, str]:
    secondary = job.get("SecondaryStatus")
    match job["TrainingJobStatus"]:
        case "Completed" if secondary == "MaxRuntimeExceeded":
            return Outcome.TIMED_OUT, _time_limit_text(job)
        case "Completed":
            return Outcome.COMPLETED, ""
        case "Failed":
            meaning, message = read_failure_reason(job.get("FailureReason", ""))
            if meaning is not Outcome.STOPPED_BY_USER:
                return meaning, message
            # SageMaker tells of a person's stop by the status.
            return stopped_for or ServiceFault, message
        case "Stopped":
            return _stopped_meaning(job, stopped_for)
        case "Deleting":
            return Outcome.STOPPED_BY_USER, "the job is being deleted"
        case status:
            raise UnknownJobStatus(f"job {job['TrainingJobName']}: {status} is not a final status")


def _stopped_meaning(job: Mapping[str, Any], stopped_for: Outcome | None) -> tuple[Meaning, str]:
    secondary = job.get("SecondaryStatus")
    if secondary == "MaxRuntimeExceeded":
        return Outcome.TIMED_OUT, _time_limit_text(job)
    if secondary == "MaxWaitTimeExceeded":
        return CapacityUnavailable, "the spot job reached MaxWaitTimeInSeconds before it completed"
    if stopped_for is not None:
        by = (
            "on request" if stopped_for is Outcome.STOPPED_BY_USER else f"by the lab: {stopped_for}"
        )
        return stopped_for, f"stopped {by}"
    if _ended_in_pending(job):
        return (
            CapacityUnavailable,
            "the job reached its limit for waiting for capacity (limits.max_pending_seconds)",
        )
    return Outcome.STOPPED_BY_USER, "stopped on request"


def _ended_in_pending(job: Mapping[str, Any]) -> bool:
    """Whether SageMaker stopped the job at MaxPendingTimeInSeconds: it never started, and waited
    until the limit.
    """
    limit_seconds = job.get("StoppingCondition", {}).get("MaxPendingTimeInSeconds")
    if limit_seconds is None or job.get("TrainingStartTime") is not None:
        return False
    ended_at = job.get("TrainingEndTime") or job.get("LastModifiedTime")
    return (
        ended_at is not None
        and epoch_seconds(ended_at) - epoch_seconds(job["CreationTime"]) >= limit_seconds
    )


def _time_limit_text(job: Mapping[str, Any]) -> str:
    limit = job.get("StoppingCondition", {}).get("MaxRuntimeInSeconds", "its longest")
    return f"still running after {limit} seconds"


def _billable_seconds(job: Mapping[str, Any]) -> int | None:
    """SageMaker leaves the figure out for a job that never started, which bills nothing."""
    billable: int | None = job.get("BillableTimeInSeconds")
    if billable is None and job.get("TrainingStartTime") is None:
        return 0
    return billable


def read_phases(transitions: Iterable[Mapping[str, Any]]) -> tuple[JobPhase, ...]:
    """Reads a job's SecondaryStatusTransitions.

    A start that reports a shortage of instances counts as waiting.
    """
    phases = []
    for transition in transitions:
        status = transition["Status"]
        if status in INSTANT_STATUSES or transition.get("EndTime") is None:
            continue
        name = PHASE_OF_STATUS[status]
        message = (transition.get("StatusMessage") or "").lower()
        if name is JobPhaseName.STARTING and any(text in message for text in SHORTAGE_TEXTS):
            name = JobPhaseName.WAITING
        begin = epoch_seconds(transition["StartTime"])
        end = epoch_seconds(transition["EndTime"])
        phases.append(JobPhase(name=name, begin=begin, end=end))
    return tuple(phases)


def epoch_seconds(time: datetime | float) -> float:
    return time.timestamp() if isinstance(time, datetime) else float(time)


def read_ages(page: Mapping[str, Any], *, now: float) -> dict[str, float]:
    """Name → seconds since creation, of the jobs on one page of ListTrainingJobs."""
    answered = _answered_at(page, otherwise=now)
    return {
        job["TrainingJobName"]: answered - epoch_seconds(job["CreationTime"])
        for job in page["TrainingJobSummaries"]
    }


def running_seconds(job: Mapping[str, Any], *, now: float) -> float | None:
    """Billed so far, of each instance; a spot job that waits for capacity again is not billed.

    None for a job that has not started, and for one that has ended.
    """
    if has_ended(job) or job.get("TrainingStartTime") is None:
        return None
    begin = epoch_seconds(job["TrainingStartTime"])
    end = _answered_at(job, otherwise=now)
    return end - begin - sum(_unbilled_seconds(job, begin, end))


def _unbilled_seconds(job: Mapping[str, Any], begin: float, end: float) -> Iterator[float]:
    for transition in job.get("SecondaryStatusTransitions") or ():
        if PHASE_OF_STATUS.get(transition["Status"]) in UNBILLED_PHASES:
            since = max(begin, epoch_seconds(transition["StartTime"]))
            yield max(0.0, epoch_seconds(transition.get("EndTime") or end) - since)


def _answered_at(answer: Mapping[str, Any], *, otherwise: float) -> float:
    """When SageMaker answered, in epoch seconds of its own clock, which its jobs' times use too."""
    date = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
    return parsedate_to_datetime(date).timestamp() if date else otherwise
