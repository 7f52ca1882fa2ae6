"""What one future run of the whole workload will take and cost, with a prediction interval."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, exp, log, sqrt
from statistics import fmean

from traindyno.core.costs.hazard import (
    PRIOR_HOURS,
    Hazard,
    hazard_key,
    measure_success,
    observe_hazards,
)
from traindyno.core.costs.interruptions import Interrupted, mean_work
from traindyno.core.costs.projection import Projection, project_run
from traindyno.core.measurement.run_result import RunResult
from traindyno.figures.beyond import NO_RANGE, Range
from traindyno.figures.distributions import incomplete_beta, t_quantile
from traindyno.figures.estimates import Interval
from traindyno.figures.host_means import one_more_run
from traindyno.figures.hosts import STATED_PRIOR, HostSpread
from traindyno.figures.in_job.run_scatter import KNOWN_DEGREES
from traindyno.figures.log_means import moderate
from traindyno.figures.trials import Trial

PREDICTION_CONFIDENCE = 0.90
_TAIL = (1 - PREDICTION_CONFIDENCE) / 2
# From this number on, numbers of interruptions are looked at in steps of a quarter.
_GROUP = 4
_MOST = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Predicted time and cost of a run.

    ``seconds`` is wall clock. Intervals are None where ``reason`` says why, or where the cost is
    unknown. ``trials`` are the trials on which it rests. ``interruptions_per_hour`` of training are
    included in the intervals.
    """

    trials: int
    confidence: float
    seconds: Interval | None
    usd: Interval | None
    interruptions_per_hour: float
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Incidents:
    """Factors of a run: on average, as the cell's figure has it, and at the two ends."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scatter:
    """What makes a later run differ from the trials; see ``predict_run`` for the fields."""

    shift: float
    undecided: Range
    trials: Sequence[Trial] | None
    host_spread: HostSpread
    inflation: float
    single_runs: float | None

    def interval(
        self, values: Sequence[float], mean: float | None, incidents: _Incidents
    ) -> Interval:
        """The prediction interval around the mean of the trials' values, or a stated ``mean``."""
        drawn = self.trials or [Trial(value=1.0) for _ in values]
        spread, degrees = one_more_run(
            [replace(trial, value=value) for trial, value in zip(drawn, values, strict=True)],
            self.host_spread,
            self.inflation,
        )
        if self.single_runs is not None:
            assumed = self.single_runs**2 * (1 + 1 / len(values))
            spread, degrees = moderate(spread, degrees, assumed, KNOWN_DEGREES)
        reach = t_quantile(1 - _TAIL, degrees) * sqrt(spread)
        plain = log(mean / incidents.mean) if mean else fmean(map(log, values))
        low = plain + min(0.0, self.shift) + self.undecided.low + log(incidents.low) - reach
        high = plain + max(0.0, self.shift) + self.undecided.high + log(incidents.high) + reach
        mean = exp(plain) * incidents.mean
        return Interval(
            low=min(exp(low), mean), high=max(exp(high), mean), confidence=PREDICTION_CONFIDENCE
        )


def _projected(measured: Sequence[RunResult]) -> list[tuple[RunResult, Projection]]:
    projections = [(result, project_run(result)) for result in measured]
    return [(result, projection) for result, projection in projections if projection is not None]


def _intervals(
    projections: Sequence[Projection],
    means: tuple[float | None, float | None],
    scatter: _Scatter,
    incidents: tuple[_Incidents, _Incidents],
) -> tuple[Interval | None, Interval | None]:
    """The intervals of the time and of the cost; None for a cost if one of a run is unknown."""
    seconds = [projection.seconds for projection in projections]
    costs = [float(projection.usd) for projection in projections if projection.usd]
    of_seconds = scatter.interval(seconds, means[0], incidents[0])
    if len(costs) < len(projections):
        return of_seconds, None
    return of_seconds, scatter.interval(costs, means[1], incidents[1])


def predict_run(
    measured: Sequence[RunResult],
    *,
    others: Sequence[RunResult] = (),
    hazard: Hazard | None = None,
    means: tuple[float | None, float | None] = (None, None),
    shift: float = 0.0,
    undecided: Range = NO_RANGE,
    trials: Sequence[Trial] | None = None,
    host_spread: HostSpread = STATED_PRIOR,
    inflation: float = 1.0,
    scatter: float | None = None,
) -> Prediction | None:
    """The prediction from the trials of one cell; None without a measured one that can be
    projected.

    Student's prediction interval for one more run (Hahn and Meeker 1991) on logarithms. Its ends
    are moved by the interruptions and own failures that one run may have, and by what the trials
    can't decide (``undecided``).

    Args:
        measured: Trials that were measured.
        others: Trials that failed.
        hazard: Rate of interruptions; by default estimated from these runs.
        means: Stated seconds and cost of the cell; by default the trials' mean with incidents.
        shift: Distance by which one end of the interval moves outwards, as a logarithm.
        undecided: Range that the trials can't decide, as logarithms.
        trials: Hosts of the trials; by default each trial has other hosts.
        host_spread: Spread between hosts: a later run is on other hosts.
        inflation: Factor of the variance of the mean, for trials that resemble the one before.
        scatter: Assumed scatter of single runs, as a share.
    """
    projected = _projected(measured)
    if not projected:
        return None
    results = [result for result, _ in projected]
    reason = _why_not(projected)
    hazard = hazard or observe_hazards(results)[hazard_key(results[0])]
    scatter_of_runs = _Scatter(
        shift=shift,
        undecided=undecided,
        trials=trials,
        host_spread=host_spread,
        inflation=inflation,
        single_runs=scatter,
    )
    incidents = _incidents_of_runs(results, others, hazard)
    projections = [projection for _, projection in projected]
    seconds, usd = (
        (None, None) if reason else _intervals(projections, means, scatter_of_runs, incidents)
    )
    return Prediction(
        trials=len(projected),
        confidence=PREDICTION_CONFIDENCE,
        seconds=seconds,
        usd=usd,
        interruptions_per_hour=hazard.per_instance_hour
        * results[0].run.cell.settings.instance_count,
        reason=reason,
    )


def _incidents_of_runs(
    projected: Sequence[RunResult], others: Sequence[RunResult], hazard: Hazard
) -> tuple[_Incidents, _Incidents]:
    """Factors of a run's wall clock, and of its training time."""
    success = measure_success([*projected, *others])
    share = success.successes / success.attempts if success.successes else 1.0
    work = mean_work(projected)
    rates = (hazard.low, hazard.per_instance_hour, hazard.high)
    at_rates = [work.at(hazard, rate) if work else Interrupted() for rate in rates]
    interruptions = at_rates[1].interruptions
    wall = [at_rate.wall for at_rate in at_rates]
    training = [at_rate.training for at_rate in at_rates]
    return (
        _incidents(wall, interruptions, hazard, share),
        _incidents(training, interruptions, hazard, share),
    )


def _incidents(
    factors: Sequence[float], expected: float, hazard: Hazard, success: float
) -> _Incidents:
    """At the ends are quantiles of the number of interruptions and of own failures, which take a
    whole run each.

    An interruption costs up to twice its mean, with equal probability: the place between two
    checkpoints is random. At the ends of what is known of the rate (``factors``: low, mean, high),
    a run takes at least what it takes on average.
    """
    cost = (factors[1] - 1) / expected if expected else 0.0
    few, many = (_interruptions(tail, expected, hazard) for tail in (_TAIL, 1 - _TAIL))
    reach = t_quantile(1 - _TAIL, 1e9)
    failed = 0 if success == 1 else max(0, ceil(log(_TAIL) / log(1 - success) - 1e-9) - 1)
    return _Incidents(
        mean=factors[1] / success,
        low=min(factors[0], 1 + cost * max(0.0, few - reach * sqrt(few / 3))),
        high=failed + max(factors[2], 1 + cost * (many + reach * sqrt(many / 3))),
    )


def _interruptions(probability: float, expected: float, hazard: Hazard) -> float:
    """A quantile of the number of interruptions, which is negative binomial: a Poisson number at a
    rate that is gamma.
    """
    if expected <= 0:
        return 0.0
    hours = hazard.hours + PRIOR_HOURS
    count = 0
    share = hours / (hours + expected / hazard.per_instance_hour)
    while count < _MOST and incomplete_beta(hazard.shape, count + 1, share) < probability:
        count += 1 + count // _GROUP
    return count


def _why_not(projected: Sequence[tuple[RunResult, Projection]]) -> str | None:
    """Why the trials don't tell how a later run differs from them."""
    count = len(projected)
    unsteady = sum(
        result.measured is not None and not result.measured.steady_state.is_reached
        for result, _ in projected
    )
    if unsteady and 2 * unsteady >= count:
        return f"{unsteady} of {count} trials were not steady"
    without_time = sum(projection.seconds <= 0 for _, projection in projected)
    if without_time:
        return f"{without_time} of {count} trials have no time to project: SageMaker reported 0 s"
    return None if count > 1 else "one trial shows no spread between runs"
