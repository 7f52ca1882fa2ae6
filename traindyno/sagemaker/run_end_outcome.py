"""Stand-in until the classification of a run's end is merged."""

from traindyno.core.jobs.journal_format import DEVICE_BUSY, JOBS_DIED, TIME_LIMIT
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.jobs.run_end import RunEnd

OF_REASON = {
    TIME_LIMIT: Outcome.TIMED_OUT,
    JOBS_DIED: Outcome.INTERNAL_ERROR,
    DEVICE_BUSY: Outcome.INTERNAL_ERROR,
}


def outcome_of(end: RunEnd) -> tuple[Outcome, str | None]:
    if end.reason in OF_REASON:
        return OF_REASON[end.reason], end.reason
    return (Outcome.COMPLETED, None) if end.exit_code == 0 else (Outcome.USER_CODE_ERROR, end.failure)
