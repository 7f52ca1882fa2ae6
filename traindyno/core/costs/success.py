"""How often a run succeeds, and what a success costs where some runs do not."""

from collections.abc import Sequence
from dataclasses import dataclass

from traindyno.core.jobs.attempt import Attempt
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.measurement.statistics import Interval
from traindyno.core.measurement.student_t import incomplete_beta

SUCCESSES = (Outcome.COMPLETED, Outcome.COST_STOPPED)
# A person or a limit of the suite ended these: they say nothing about the cell.
NOT_COUNTED = (Outcome.STOPPED_BY_USER,)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuccessRate:
    """``attempts`` are the training jobs that were billed, ``successes`` those of them that completed their work."""

    successes: int
    attempts: int

    @property
    def rate(self) -> float | None:
        """None where no job ran."""
        return self.successes / self.attempts if self.attempts else None

    def interval(self, confidence: float = 0.95) -> Interval:
        """The equal-tailed interval of the Jeffreys prior (Brown, Cai and DasGupta 2001)."""
        tail = (1 - confidence) / 2
        a, b = self.successes + 0.5, self.attempts - self.successes + 0.5
        low = _beta_quantile(tail, a, b) if self.successes else 0.0
        high = _beta_quantile(1 - tail, a, b) if self.successes < self.attempts else 1.0
        return Interval(low=low, high=high, confidence=confidence)

    def per_success(self, amount: float) -> float | None:
        """Time or cost of one success, where each attempt takes ``amount``; None where none succeeded."""
        return amount / self.rate if self.rate else None


def measure_success(results: Sequence[RunResult]) -> SuccessRate:
    """Over all attempts of a cell's runs that were billed; one that never got an instance costs time only."""
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


def _beta_quantile(probability: float, a: float, b: float) -> float:
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if incomplete_beta(a, b, middle) < probability else (low, middle)
    return (low + high) / 2
