"""What one future run of the whole workload will take and cost, with a prediction interval."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import exp, log, sqrt
from statistics import fmean, variance

from traindyno.core.costs.prices import SECONDS_PER_HOUR
from traindyno.core.costs.projection import Projection, measured_attempt, project_run, read_job_time
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.statistics.estimates import Interval
from traindyno.core.statistics.student_t import t_half_width

PREDICTION_CONFIDENCE = 0.90
# Steady trials that an interval needs if others were not steady; at least half of all trials must be steady, too.
LEAST_STEADY_TRIALS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """``seconds`` is wall clock. Intervals are None where ``reason`` says why, or where the cost is unknown.

    ``trials`` are those that it rests on; ``left_out`` were not steady.
    ``interruptions_per_hour`` of training are those that the trials had; the intervals include them at this rate.
    """

    trials: int
    confidence: float
    seconds: Interval | None
    usd: Interval | None
    interruptions_per_hour: float
    reason: str | None = None
    left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Interruptions:
    count: int
    training_hours: float
    seconds_each: float

    @property
    def per_hour(self) -> float:
        return self.count / self.training_hours if self.training_hours > 0 else 0.0

    def added_seconds(self, hours: float) -> tuple[float, float]:
        """Mean and variance of what interruptions add to a run of so many hours of training.

        Their number in another run is negative binomial: a Poisson number at a rate that is known from ``count``.
        """
        expected = self.per_hour * hours
        spread = expected + (expected * expected / self.count if self.count else 0.0)
        return expected * self.seconds_each, spread * self.seconds_each**2


def predict_run(results: Sequence[RunResult], *, confidence: float = PREDICTION_CONFIDENCE) -> Prediction | None:
    """The prediction from the measured trials of one cell; None without any.

    The interval is Student's prediction interval for one more run (Hahn and Meeker 1991) on logarithms, with half width
    t · s · sqrt(1 + 1/n): the spread s of the trials includes the draw of hosts, start-up and what recurs at random. It
    includes their own errors too, which a long run averages out, so that it is wide rather than narrow where hosts
    hardly differ. Interruptions are added at their observed rate.
    """
    projected = [
        (result, _with_stalls(result, projection))
        for result in results
        if (projection := project_run(result)) is not None
    ]
    if not projected:
        return None
    found = _usable(projected)
    interruptions = _observe_interruptions([result for result, _ in found])
    reason = _why_not(found)
    seconds = usd = None
    if reason is None:
        projections = [projection for _, projection in found]
        costs = [float(each.usd) for each in projections if each.usd]
        seconds = _interval([each.seconds for each in projections], projections, interruptions, confidence)
        usd = _interval(costs, projections, interruptions, confidence) if len(costs) == len(found) else None
    return Prediction(
        trials=len(found),
        confidence=confidence,
        seconds=seconds,
        usd=usd,
        interruptions_per_hour=interruptions.per_hour,
        reason=reason,
        left_out=len(projected) - len(found),
    )


def _usable(projected: Sequence[tuple[RunResult, Projection]]) -> Sequence[tuple[RunResult, Projection]]:
    """The steady trials where they are enough, else all, which have no interval."""
    usable = [(result, projection) for result, projection in projected if _is_usable(result)]
    return usable if len(usable) >= max(LEAST_STEADY_TRIALS, len(projected) / 2) else projected


def _is_usable(result: RunResult) -> bool:
    """At a steady level. Stalls count at the rate at which they were seen, and noise is in the spread of the trials."""
    return result.measured is None or result.measured.is_settled


def _stall_share(result: RunResult) -> float | None:
    return None if result.measured is None else result.measured.steady_state.stall_share


def _with_stalls(result: RunResult, projection: Projection) -> Projection:
    """Earlier versions left stalls of unknown cause out of the rate: the later run has as many as the trials."""
    added = (_stall_share(result) or 0.0) * (projection.seconds - projection.overhead_seconds)
    if not added:
        return projection
    longer = 1 + added / _training_seconds(projection)
    billable = None if projection.billable_seconds is None else projection.billable_seconds * longer
    return replace(
        projection,
        seconds=projection.seconds + added,
        billable_seconds=billable,
        instance_hours=projection.instance_hours * longer,
        usd=None if projection.usd is None else projection.usd * Decimal(str(longer)),
    )


def _why_not(found: Sequence[tuple[RunResult, Projection]]) -> str | None:
    unsteady = sum(not _is_usable(result) for result, _ in found)
    if unsteady:
        return f"{unsteady} of {len(found)} trials were not steady"
    without_time = sum(projection.seconds <= 0 for _, projection in found)
    if without_time:
        return f"{without_time} of {len(found)} trials have no time to project: SageMaker reported 0 s"
    return None if len(found) > 1 else "one trial shows no spread between runs"


def _interval(
    values: Sequence[float], projections: Sequence[Projection], interruptions: _Interruptions, confidence: float
) -> Interval:
    """The interval of seconds or of cost; interruptions add the same share to both."""
    logs = [log(value) for value in values]
    training_hours = fmean([_training_seconds(each) for each in projections]) / SECONDS_PER_HOUR
    added, added_variance = interruptions.added_seconds(training_hours)
    typical = exp(fmean([log(each.seconds) for each in projections]))
    spread = sqrt(variance(logs) * (1 + 1 / len(logs)) + added_variance / (typical + added) ** 2)
    reach = t_half_width(spread, len(logs) - 1, confidence)
    center = fmean(logs) + log(1 + added / typical)
    return Interval(low=exp(center - reach), high=exp(center + reach), confidence=confidence)


def _training_seconds(projection: Projection) -> float:
    return projection.seconds - projection.overhead_seconds + projection.training_overhead_seconds


def _observe_interruptions(results: Sequence[RunResult]) -> _Interruptions:
    """Interruptions over all trials together."""
    measured = [result.measured for result in results if result.measured is not None]
    count = sum(each.interruptions or 0 for each in measured)
    attempts = [attempt for result in results if (attempt := measured_attempt(result)) is not None]
    times = [found.training for attempt in attempts if (found := read_job_time(attempt)) is not None]
    lost = sum(each.lost_seconds or 0.0 for each in measured)
    return _Interruptions(
        count=count, training_hours=sum(times) / SECONDS_PER_HOUR, seconds_each=lost / count if count else 0.0
    )
