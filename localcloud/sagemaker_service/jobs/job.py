"""A training job as the service stores it, with the transitions of its status."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from traindyno.core.suite.job_time import UPLOAD_SECONDS

FAILURE_REASON_LIMIT = 1024
# SageMaker bills a spot job at the on-demand price for fewer seconds than it trained: (1 - saving)
# x training time. Savings vary by type and hour. AWS names savings of up to 90 %; this nominal one
# lies between.
NOMINAL_SPOT_SAVING = 0.6
# The failure reason of a job whose upload was ended, which SageMaker never does.
UPLOAD_ENDED = (
    f"ClientError: the upload of the outputs took longer than {UPLOAD_SECONDS} s, so the local "
    "cloud ended it. SageMaker goes on, and bills it"
)


class Status(StrEnum):
    IN_PROGRESS = "InProgress"
    COMPLETED = "Completed"
    FAILED = "Failed"
    STOPPING = "Stopping"
    STOPPED = "Stopped"


class SecondaryStatus(StrEnum):
    STARTING = "Starting"
    PENDING = "Pending"
    DOWNLOADING = "Downloading"
    TRAINING = "Training"
    INTERRUPTED = "Interrupted"
    UPLOADING = "Uploading"
    STOPPING = "Stopping"
    STOPPED = "Stopped"
    MAX_RUNTIME_EXCEEDED = "MaxRuntimeExceeded"
    MAX_WAIT_TIME_EXCEEDED = "MaxWaitTimeExceeded"
    COMPLETED = "Completed"
    FAILED = "Failed"


class Engine(StrEnum):
    PROCESS = "process"
    REPLAY = "replay"


# The secondary statuses with which a job ends, and its status then
ENDS = {
    SecondaryStatus.COMPLETED: Status.COMPLETED,
    SecondaryStatus.FAILED: Status.FAILED,
    SecondaryStatus.STOPPED: Status.STOPPED,
    SecondaryStatus.MAX_RUNTIME_EXCEEDED: Status.STOPPED,
    SecondaryStatus.MAX_WAIT_TIME_EXCEEDED: Status.STOPPED,
}
TERMINAL = frozenset(ENDS.values())
BILLED = frozenset(
    {
        SecondaryStatus.DOWNLOADING,
        SecondaryStatus.TRAINING,
        SecondaryStatus.UPLOADING,
        SecondaryStatus.STOPPING,
    }
)
MESSAGES = {
    SecondaryStatus.STARTING: "Preparing the instances for training",
    SecondaryStatus.PENDING: "Waiting for capacity",
    SecondaryStatus.DOWNLOADING: "Downloading input data",
    SecondaryStatus.TRAINING: "Training image download completed. Training in progress.",
    SecondaryStatus.INTERRUPTED: "The Spot capacity was interrupted",
    SecondaryStatus.UPLOADING: "Uploading generated training model",
    SecondaryStatus.STOPPING: "Stopping the training job",
    SecondaryStatus.STOPPED: "Training job stopped",
    SecondaryStatus.MAX_RUNTIME_EXCEEDED: (
        "Training job runtime exceeded MaxRuntimeInSeconds provided"
    ),
    SecondaryStatus.MAX_WAIT_TIME_EXCEEDED: "Training job wait time exceeded the maximum provided",
    SecondaryStatus.COMPLETED: "Training job completed",
    SecondaryStatus.FAILED: "Training job failed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    status: SecondaryStatus
    start_ms: int
    end_ms: int | None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """A change of a simulated job's status, planned for ``due_ms``."""

    due_ms: int
    secondary_status: SecondaryStatus
    message: str | None = None
    failure_reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingJob:
    """A training job."""

    name: str
    arn: str
    engine: Engine
    #: The request of CreateTrainingJob.
    request: Mapping[str, Any]
    created_ms: int
    modified_ms: int
    status: Status
    transitions: tuple[Transition, ...]
    tags: Mapping[str, str] = field(default_factory=dict)
    #: Whether an engine has begun to work on the job.
    claimed: bool = False
    stop_requested: bool = False
    training_start_ms: int | None = None
    training_end_ms: int | None = None
    billable_seconds: int | None = None
    failure_reason: str | None = None
    planned: tuple[PlannedStep, ...] = ()
    simulated_steps: int = 0
    #: The runs that had not ended before a simulated job that several runs share.
    simulated_runs: tuple[str, ...] = ()
    #: The runs during which too many jobs have died: they are not started again.
    doomed_runs: tuple[str, ...] = ()
    #: The name of the job of each run that completed before it.
    completed_runs: Mapping[str, str] = field(default_factory=dict)

    @property
    def secondary_status(self) -> SecondaryStatus:
        return self.transitions[-1].status

    @property
    def instance_type(self) -> str:
        return str(self.request["ResourceConfig"]["InstanceType"])

    @property
    def instance_count(self) -> int:
        return int(self.request["ResourceConfig"].get("InstanceCount", 1))

    @property
    def hosts(self) -> list[str]:
        return [f"algo-{number}" for number in range(1, self.instance_count + 1)]

    @property
    def image_uri(self) -> str:
        """The image; empty if the job names an algorithm instead."""
        return str(self.request["AlgorithmSpecification"].get("TrainingImage", ""))

    @property
    def hyperparameters(self) -> dict[str, Any]:
        return {
            name: decoded(value) for name, value in self.request.get("HyperParameters", {}).items()
        }

    @property
    def is_spot(self) -> bool:
        return bool(self.request.get("EnableManagedSpotTraining", False))

    @property
    def max_runtime_seconds(self) -> int:
        return int((self.request.get("StoppingCondition") or {}).get("MaxRuntimeInSeconds", 86400))


def decoded(hyperparameter: str) -> Any:
    """The value of a hyperparameter's JSON; a text that is no JSON is the value itself."""
    try:
        return json.loads(hyperparameter)
    except ValueError:
        return hyperparameter


def billed_ms(job: TrainingJob) -> int:
    """How long the job held billed instances.

    Waiting, starting and interruptions are not billed.
    """
    return sum(
        step.end_ms - step.start_ms
        for step in job.transitions
        if step.status in BILLED and step.end_ms is not None
    )


def billed_so_far_ms(job: TrainingJob, now_ms: int) -> int:
    """The time that is billed until now, also of the current status, which has no end yet."""
    last = job.transitions[-1]
    is_running = last.status in BILLED and last.end_ms is None
    return billed_ms(job) + (now_ms - last.start_ms if is_running else 0)


def billed_seconds(job: TrainingJob) -> int:
    """The billed seconds of each instance: wall time, reduced by the saving for a simulated spot
    job.
    """
    saving = NOMINAL_SPOT_SAVING if job.is_spot and job.engine is Engine.REPLAY else 0
    return whole_seconds(billed_ms(job) * (1 - saving))


def whole_seconds(held_ms: float) -> int:
    """At least one if an instance was held, so that no cap lets short jobs run for nothing."""
    return max(round(held_ms / 1000), 1) if held_ms else 0


def new_job(
    request: Mapping[str, Any],
    *,
    arn: str,
    engine: Engine,
    now_ms: int,
    tags: Mapping[str, str] | None = None,
) -> TrainingJob:
    message = "Starting the training job"
    first = Transition(
        status=SecondaryStatus.STARTING, start_ms=now_ms, end_ms=None, message=message
    )
    return TrainingJob(
        name=request["TrainingJobName"],
        arn=arn,
        engine=engine,
        request=request,
        created_ms=now_ms,
        modified_ms=now_ms,
        status=Status.IN_PROGRESS,
        transitions=(first,),
        tags=tags or {},
    )


def moved(
    job: TrainingJob, secondary_status: SecondaryStatus, *, now_ms: int, message: str | None = None
) -> TrainingJob:
    """The job in this secondary status. If the job has it already, only the message changes.

    A job's times never go back, even if the wall clock was set back while it waited.
    """
    last = job.transitions[-1]
    now_ms = max(now_ms, last.start_ms)
    text = message or MESSAGES[secondary_status]
    if last.status is secondary_status:
        transitions = (*job.transitions[:-1], replace(last, message=text))
    else:
        begun = Transition(status=secondary_status, start_ms=now_ms, end_ms=None, message=text)
        transitions = (*job.transitions[:-1], replace(last, end_ms=now_ms), begun)
    return replace(job, transitions=transitions, modified_ms=now_ms)


def ended(
    job: TrainingJob,
    secondary_status: SecondaryStatus,
    *,
    now_ms: int,
    failure_reason: str | None = None,
    message: str | None = None,
) -> TrainingJob:
    """The job with one of ENDS. Nothing is billed if the job never started."""
    if job.status in TERMINAL:
        return job
    at_end = moved(job, secondary_status, now_ms=now_ms, message=message)
    now_ms = at_end.modified_ms
    last = replace(at_end.transitions[-1], end_ms=now_ms)
    return replace(
        at_end,
        status=ENDS[secondary_status],
        transitions=(*at_end.transitions[:-1], last),
        training_end_ms=None if job.training_start_ms is None else now_ms,
        billable_seconds=None if job.training_start_ms is None else billed_seconds(at_end),
        failure_reason=failure_reason[:FAILURE_REASON_LIMIT] if failure_reason else None,
    )
