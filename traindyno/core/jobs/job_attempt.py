"""The attempt that an ended training job was."""

from traindyno.core.errors import CapacityUnavailable, NextAttempt, ServiceFault, SlotUnavailable, Throttled
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.jobs.job_end import JobEnd
from traindyno.core.jobs.job_phases import JobPhaseName
from traindyno.core.jobs.outcome import Outcome

# What a run gets that may not try again: what kept it from running.
LAST_OUTCOMES: dict[type[NextAttempt], Outcome] = {
    CapacityUnavailable: Outcome.CAPACITY_UNAVAILABLE,
    SlotUnavailable: Outcome.QUOTA_EXCEEDED,
    ServiceFault: Outcome.INTERNAL_ERROR,
    Throttled: Outcome.INTERNAL_ERROR,
}


def ended_attempt(
    end: JobEnd,
    *,
    number: int,
    is_last: bool,
    submitted_at: float,
    image_uri: str | None,
    started_warm: bool | None = None,
) -> Attempt:
    """``is_last``: no further attempt is allowed, so that what would lead to one is the run's outcome."""
    outcome, error = end.outcome, end.next_attempt
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
        image_uri=image_uri,
        instance_type=end.instance_type,
        started_warm=started_warm,
        keep_warm_seconds=end.may_keep_warm_seconds,
    )
