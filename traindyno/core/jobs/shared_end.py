"""The end of a shared job's attempt: whether its runs have ended, or another attempt carries on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from traindyno.core.errors import RunsLeft
from traindyno.core.jobs.attempt import LAST_OUTCOMES, Attempt
from traindyno.core.jobs.outcome import Outcome

# However many runs end in each.
MOST_ATTEMPTS = 100
# Somebody ended the job, and no further attempt is wanted.
STOPS = (Outcome.STOPPED_BY_USER, Outcome.COST_STOPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProgress:
    """What the job's runs have reached when one of its attempts has ended."""

    #: The runs that have not ended in any attempt.
    left: Sequence[str]
    runs: int
    #: Whether a run began in this attempt.
    began: bool
    #: Whether a run ended in this attempt.
    advanced: bool


def is_last_attempt(number: int, *, idle: int, max_attempts: int) -> bool:
    """``idle``: the attempts in which no run has ended, this one included. The others don't count against the limit."""
    return idle >= max_attempts or number >= MOST_ATTEMPTS


def shared_end(end: Attempt, progress: JobProgress, *, is_last: bool, stopped_for: Outcome | None) -> Attempt:
    """The attempt as its job ended, with what follows for the job. ``stopped_for``: why the lab stopped it."""
    if not progress.left:
        return replace(end, outcome=Outcome.COMPLETED, error=None)
    if (is_last and not progress.advanced) or end.number >= MOST_ATTEMPTS:
        return _without_next(end, progress)
    if end.error is not None:
        return end
    completed = end.outcome is Outcome.COMPLETED
    if stopped_for is not None and completed:
        return replace(end, outcome=stopped_for)
    fails_again = not progress.began and not completed  # what fails before the first run begins
    if stopped_for is not None or end.outcome in STOPS or fails_again:
        return end
    cut_off = end.outcome is Outcome.TIMED_OUT
    return replace(end, outcome=None, error=RunsLeft.__name__, message=_left_text(end, progress), was_cut_off=cut_off)


def _without_next(end: Attempt, progress: JobProgress) -> Attempt:
    errors = {error.__name__: outcome for error, outcome in LAST_OUTCOMES.items()}
    if end.error is not None:
        return replace(end, outcome=errors[end.error])
    if end.outcome is Outcome.COMPLETED:
        return replace(end, outcome=Outcome.INTERNAL_ERROR, message=_left_text(end, progress))
    return end


def _left_text(end: Attempt, progress: JobProgress) -> str:
    about = f"{end.outcome}: {end.message}" if end.message else str(end.outcome)
    return f"{len(progress.left)} of the job's {progress.runs} runs had not ended ({about})"
