"""How often an attempt at a run succeeds."""

from collections.abc import Sequence
from dataclasses import dataclass

from traindyno.core.jobs.attempt import Attempt
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import RunResult

SUCCESSES = (Outcome.COMPLETED, Outcome.COST_STOPPED)
# A person or a limit of the suite ended these: they say nothing about the cell.
NOT_COUNTED = (Outcome.STOPPED_BY_USER,)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuccessRate:
    """``attempts`` are the training jobs that were billed, ``successes`` those of them that completed their work."""

    successes: int
    attempts: int


def measure_success(results: Sequence[RunResult]) -> SuccessRate:
    """Counts all billed attempts of a cell's runs: an attempt without an instance costs time but no money."""
    counted = [
        (result, attempt)
        for result in results
        for attempt in result.attempts
        if attempt.billable_seconds and (attempt.outcome or result.outcome) not in NOT_COUNTED
    ]
    successes = sum(_is_success(result, attempt) for result, attempt in counted)
    return SuccessRate(successes=successes, attempts=len(counted))


def _is_success(result: RunResult, attempt: Attempt) -> bool:
    """The outcome of the run counts for its last attempt: a loss may be found to have diverged after the job ended."""
    outcome = result.outcome if attempt is result.attempts[-1] else attempt.outcome
    return attempt.error is None and outcome in SUCCESSES
