"""How often an attempt at a run succeeds, as far as the cell itself decides it."""

from collections.abc import Sequence
from dataclasses import dataclass

from traindyno.core.jobs.outcome import OWN_FAILURES, SUCCESSES
from traindyno.core.measurement.run_result import RunResult


@dataclass(frozen=True, slots=True, kw_only=True)
class SuccessRate:
    """``attempts`` are the billed training jobs that succeeded or failed by the cell itself."""

    successes: int
    attempts: int


def measure_success(results: Sequence[RunResult]) -> SuccessRate:
    """Faults of the service, missing capacity and jobs that a person stopped count for nothing (see hazard.py)."""
    # the outcome of the run counts for its last attempt: a loss may be found to have diverged after the job ended
    outcomes = [
        result.outcome if attempt is result.attempts[-1] else attempt.outcome
        for result in results
        for attempt in result.attempts
        if attempt.billable_seconds and attempt.error is None
    ]
    successes = sum(outcome in SUCCESSES for outcome in outcomes)
    return SuccessRate(successes=successes, attempts=successes + sum(each in OWN_FAILURES for each in outcomes))
