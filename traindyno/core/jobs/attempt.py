"""An attempt: one training job submitted for a run, as it was described after its end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from traindyno.core.errors import (
    CapacityUnavailable,
    JobTimeUsed,
    NextAttempt,
    RunsLeft,
    ServiceFault,
    SlotUnavailable,
    Throttled,
)
from traindyno.core.jobs.job_end import JobEnd, JobPhaseName
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.jobs.run_end import BatchFinding, OutpacedBound

# The outcome of a run that has no further attempt: the reason why it could not run.
LAST_OUTCOMES: dict[type[NextAttempt], Outcome] = {
    CapacityUnavailable: Outcome.CAPACITY_UNAVAILABLE,
    JobTimeUsed: Outcome.TIMED_OUT,
    RunsLeft: Outcome.INTERNAL_ERROR,
    SlotUnavailable: Outcome.QUOTA_EXCEEDED,
    ServiceFault: Outcome.INTERNAL_ERROR,
    Throttled: Outcome.INTERNAL_ERROR,
}
# Errors of the service and of missing capacity, after which the state machine starts another
# attempt.
FAULT_ERRORS = (ServiceFault.__name__, CapacityUnavailable.__name__)
UNBILLED_PHASES = (
    JobPhaseName.WAITING.value,
    JobPhaseName.STARTING.value,
    JobPhaseName.INTERRUPTED.value,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunShare:
    """A run's share of a job that several runs share.

    Seconds are wall clock in which the job trained; downloads and uploads are included. The run's
    part of the bill is its attempt's ``billable_seconds``, which add up to the job's over all runs.
    """

    #: Seconds from the barrier at which the run began to the end of its clean-up.
    own_seconds: float
    #: Seconds of the job before its first run began: data, image, toolkit. A job of this run alone
    #: would have them too.
    start_seconds: float
    #: Seconds of the job after its last run ended.
    end_seconds: float
    #: Place among the runs that share the bill, from 1; 0 if it was billed nothing.
    place: int
    #: Number of runs that share the bill: all that began, or if none began, all planned ones.
    runs: int
    #: Whether the end of the job ended this run too. A fault of the service counts for this run
    #: only. If no run began, the first one's turn had come.
    was_in_progress: bool = False

    @property
    def alone_seconds(self) -> float:
        """The time for which a job of this run alone would train."""
        return self.start_seconds + self.own_seconds + self.end_seconds


def divide_whole(total: int, weights: Sequence[int]) -> list[int]:
    """Whole parts of ``total`` in proportion to the weights, or equal ones if all are 0, by the
    largest remainder.
    """
    used = weights if any(weights) else [1] * len(weights)
    whole = sum(used)
    parts = [total * weight // whole for weight in used]
    by_remainder = sorted(range(len(used)), key=lambda index: -(total * used[index] % whole))
    for index in by_remainder[: total - sum(parts)]:
        parts[index] += 1
    return parts


def divide_seconds(seconds: float, weights: Sequence[int]) -> list[float]:
    """In whole milliseconds."""
    return [part / 1000 for part in divide_whole(round(seconds * 1000), weights)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """An attempt of a run or preparation: one training job.

    Times are epoch seconds. None is unknown, or has not happened. With a ``share``, outcome, billed
    and training time are the run's, and add up to the job's; phases are the job's.
    """

    number: int
    job_name: str
    #: Outcome; None if the attempt led to the next one.
    outcome: Outcome | None = None
    #: Why there was a next attempt: an ErrorEquals name.
    error: str | None = None
    message: str | None = None
    submitted_at: float | None = None
    started_at: float | None = None
    ended_at: float | None = None
    #: What SageMaker bills of each instance, after a spot discount.
    billable_seconds: float | None = None
    #: SageMaker's training time, before a spot discount.
    training_seconds: float | None = None
    #: Status of the service (waiting, starting, downloading, training, uploading) → wall clock.
    phase_seconds: Mapping[str, float] = field(default_factory=dict)
    image_uri: str | None = None
    instance_type: str | None = None
    #: Whether the service ended its job at the time limit, so that a run in progress was cut off
    #: and did not fail.
    was_cut_off: bool = False
    #: The run's share of the job; None if the job carried this run only.
    share: RunShare | None = None
    #: Bound by which the run was outpaced, if it was.
    bound: OutpacedBound | None = None
    #: Result of the search for its batch, if there was one.
    batch: BatchFinding | None = None

    @property
    def is_charged_for_faults(self) -> bool:
        """Whether a fault that ended the job counts for this run: it counts once for each job."""
        return self.share is None or self.share.was_in_progress


def trained_seconds(attempt: Attempt) -> float | None:
    """SageMaker's training time, or the phases that it bills; None if neither is known.

    Of a share, its part.
    """
    if attempt.share is not None:
        return attempt.training_seconds
    phases = attempt.phase_seconds
    if not phases and attempt.billable_seconds is None:
        return None
    billed = sum(seconds for name, seconds in phases.items() if name not in UNBILLED_PHASES)
    training = attempt.training_seconds or billed or attempt.billable_seconds or 0.0
    if phases.get(JobPhaseName.INTERRUPTED):
        # SageMaker does not document whether its training time includes the time without instances.
        return min(training, billed)
    return training


def ended_attempt(end: JobEnd, *, number: int, is_last: bool, submitted_at: float) -> Attempt:
    """The attempt of a job that has ended.

    Args:
        end: End of the job.
        number: Number of the attempt.
        is_last: No further attempt is allowed, so the reason for one becomes the run's outcome.
        submitted_at: Epoch seconds.
    """
    outcome = end.outcome
    error = end.next_attempt
    if error is not None and is_last:
        outcome = LAST_OUTCOMES[error]
    phase_seconds: dict[str, float] = {}
    for phase in end.phases:
        phase_seconds[phase.name.value] = phase_seconds.get(phase.name.value, 0.0) + phase.seconds
    training = next((phase for phase in end.phases if phase.name is JobPhaseName.TRAINING), None)
    return Attempt(
        number=number,
        job_name=end.job_name,
        outcome=outcome,
        error=error.__name__ if error else None,
        message=end.message or None,
        submitted_at=submitted_at,
        started_at=training.begin if training else None,
        ended_at=end.ended_at,
        billable_seconds=end.billable_seconds,
        training_seconds=end.training_seconds,
        phase_seconds=phase_seconds,
        image_uri=end.image_uri,
        instance_type=end.instance_type,
    )
