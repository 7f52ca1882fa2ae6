"""What one future run of the whole workload will take and cost, with a prediction interval."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp, inf, log, sqrt
from statistics import fmean

from traindyno.core.costs.hazard import PRIOR_HOURS, Hazard, hazard_key, observe_hazards
from traindyno.core.costs.interruptions import Exposure, exposure_of
from traindyno.core.costs.projection import Projection, project_run
from traindyno.core.costs.success import measure_success
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.statistics.distributions import incomplete_beta, t_density, t_half_width, two_sided_p
from traindyno.core.statistics.estimates import NO_RANGE, Interval, Range
from traindyno.core.statistics.hosts import STATED_PRIOR, HostSpread, Trial, one_more_run

_MOST_FAILURES = 40
_GROUP = 4  # from here on, numbers that differ by a quarter count as one
_NEGLIGIBLE = 1e-4  # a probability, of the 5 % beyond each end of the interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Incidents:
    """``parts``: a probability, the factor of a run with that number of incidents, and its own relative deviation.

    ``mean_factor`` is the one that the cell's figure has.
    """

    mean_factor: float
    parts: tuple[tuple[float, float, float], ...]


def expect_incidents(
    exposures: Sequence[Exposure], hazard: Hazard | None, success: float, *, is_wall: bool
) -> Incidents | None:
    """``success``: the share of attempts that the cell itself does not make fail. None if a run would hardly ever end.

    An interruption costs up to twice its mean, with equal probability: the place between two checkpoints is random.
    """
    delays = [None if hazard is None else each.delay(hazard) for each in exposures]
    if hazard is not None and None in delays:
        return None
    logs, each_costs, numbers = [], [], []
    for exposure, delay in zip(exposures, delays, strict=True):
        if delay is None or not delay.interruptions:
            continue
        factor = exposure.wall_factor(delay) if is_wall else exposure.training_factor(delay)
        logs.append(log(factor))
        each_costs.append((factor - 1) / delay.interruptions)
        numbers.append(delay.interruptions)
    cost = fmean(each_costs) if each_costs else 0.0
    expected = fmean(numbers) if numbers else 0.0
    parts = [
        (weight * share, failed + 1 + count * cost, cost * sqrt(count / 3) / (failed + 1 + count * cost))
        for failed, weight in _failures(success)
        for count, share in _interruptions(expected, hazard)
        if weight * share > _NEGLIGIBLE
    ]
    total = sum(weight for weight, _, _ in parts)
    return Incidents(
        mean_factor=exp(fmean(logs) if logs else 0.0) / success,
        parts=tuple((weight / total, factor, deviation) for weight, factor, deviation in parts),
    )


def _failures(success: float) -> Iterator[tuple[int, float]]:
    """Failed attempts before the one that succeeds, each of which takes a whole run: geometric."""
    weight, count = success, 0
    while weight > _NEGLIGIBLE and count < _MOST_FAILURES:
        yield count, weight
        weight, count = weight * (1 - success), count + 1


def _interruptions(expected: float, hazard: Hazard | None) -> Iterator[tuple[float, float]]:
    """Their number is negative binomial: a Poisson number at a rate that is gamma. Many are taken in groups."""
    if hazard is None or expected <= 0:
        yield 0.0, 1.0
        return
    shape, hours = hazard.shape, hazard.hours + PRIOR_HOURS
    exposed = expected / hazard.per_instance_hour
    share = hours / (hours + exposed)
    first, below = 0, 0.0
    while 1 - below > _NEGLIGIBLE and first < 2**20:
        width = 1 + first // _GROUP
        up_to = incomplete_beta(shape, first + width, share)
        yield first + (width - 1) / 2, up_to - below
        first, below = first + width, up_to


PREDICTION_CONFIDENCE = 0.90
ENDLESS = "almost every start is interrupted before its next checkpoint"
# Newton's method within a bracket; where nothing is smooth, halvings of the bracket.
_MOST_STEPS = 60
_CLOSE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """``seconds`` is wall clock. Intervals are None where ``reason`` says why, or where the cost is unknown.

    ``trials`` are those that it rests on. ``interruptions_per_hour`` of training are those that the intervals include.
    """

    trials: int
    confidence: float
    seconds: Interval | None
    usd: Interval | None
    interruptions_per_hour: float
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spread:
    """How the next run without incident differs from the trials' mean: Student's t, on logarithms.

    ``low`` and ``high`` are the ends of what the trials don't decide, such as whether a stall recurs.
    """

    deviation: float
    degrees_of_freedom: float
    low: float
    high: float
    confidence: float

    def interval(self, mean: float, incidents: Incidents) -> Interval:
        """``mean`` includes the ``incidents`` on average, and is within the interval."""
        tail = (1 - self.confidence) / 2
        center = log(mean / incidents.mean_factor)
        low = self._quantile(tail, center + self.low, incidents)
        high = self._quantile(1 - tail, center + self.high, incidents)
        return Interval(low=min(low, mean), high=max(high, mean), confidence=self.confidence)

    def _quantile(self, probability: float, center: float, incidents: Incidents) -> float:
        """Quantile of a mixture: one distribution for each number of incidents, weighted by its probability."""
        parts = [
            (weight, center + log(factor), sqrt(self.deviation**2 + further**2))
            for weight, factor, further in incidents.parts
        ]
        ends = [self._reached(each, probability) for each in parts]
        low, high = min(ends), max(ends)
        guess = (low + high) / 2
        for _ in range(_MOST_STEPS if high > low else 0):
            missing = probability - sum(weight * self._share_below(guess - at, wide) for weight, at, wide in parts)
            low, high = (guess, high) if missing > 0 else (low, guess)
            density = sum(weight * self._density(guess - at, wide) for weight, at, wide in parts)
            newton = guess + missing / density if density > 0 else inf
            following = newton if low <= newton <= high else (low + high) / 2
            if abs(following - guess) <= _CLOSE:
                break
            guess = following
        return exp(guess)

    def _reached(self, part: tuple[float, float, float], probability: float) -> float:
        _, at, wide = part
        reach = t_half_width(wide, self.degrees_of_freedom, self.confidence)
        return at + (reach if probability > 0.5 else -reach)

    def _share_below(self, distance: float, deviation: float) -> float:
        if deviation <= 0:
            return float(distance >= 0)
        tail = two_sided_p(distance / deviation, self.degrees_of_freedom) / 2
        return tail if distance < 0 else 1 - tail

    def _density(self, distance: float, deviation: float) -> float:
        return t_density(distance / deviation, self.degrees_of_freedom) / deviation if deviation > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Terms:
    """What seconds and cost have in common; see the arguments of ``predict_run``."""

    undecided: Range
    host_spread: HostSpread
    trials: Sequence[Trial]
    inflation: float
    confidence: float

    def interval(self, values: Sequence[float], mean: float | None, incidents: Incidents) -> Interval:
        """``mean`` of None: that of the values, with incidents."""
        logs = [log(value) for value in values]
        trials = [replace(each, value=value) for each, value in zip(self.trials, values, strict=True)]
        found, degrees = one_more_run(trials, self.host_spread, self.inflation)
        spread = _Spread(
            deviation=sqrt(found),
            degrees_of_freedom=degrees,
            low=self.undecided.low,
            high=self.undecided.high,
            confidence=self.confidence,
        )
        return spread.interval(exp(fmean(logs)) * incidents.mean_factor if mean is None else mean, incidents)


def predict_run(
    measured: Sequence[RunResult],
    *,
    others: Sequence[RunResult] = (),
    hazard: Hazard | None = None,
    means: tuple[float | None, float | None] | None = None,
    undecided: Range = NO_RANGE,
    host_spread: HostSpread = STATED_PRIOR,
    trials: Sequence[Trial] | None = None,
    inflation: float = 1.0,
    confidence: float = PREDICTION_CONFIDENCE,
) -> Prediction | None:
    """The prediction from the trials of one cell; None without a measured one that can be projected.

    The interval is Student's prediction interval for one more run (Hahn and Meeker 1991) on logarithms, with half width
    t · s · sqrt(1 + 1/n): the spread s of the trials includes the draw of hosts, start-up and what recurs at random. It
    includes their own errors too, which a long run averages out, so that it is wide rather than narrow where hosts
    hardly differ. Interruptions and the cell's own failures are added by their number in one run.

    ``others`` failed. ``hazard`` of None: as these runs show it. ``means`` of seconds and cost: those that are stated
    of the cell; by default, the trials' mean with incidents. ``undecided``: what the trials can't decide.
    ``trials``: their hosts; None: other ones for each. ``host_spread``: a later run is on other hosts. ``inflation`` of
    the variance of the trials' mean: for trials that resemble the one before.
    """
    projected = [(result, each) for result in measured if (each := project_run(result)) is not None]
    if not projected:
        return None
    first = projected[0][0]
    hazard = hazard or observe_hazards(each for each, _ in projected)[hazard_key(first)]
    counted = None if hazard.is_left_out else hazard
    reason = _why_not(projected) or (ENDLESS if counted is None else None)
    found = None if reason else _expect(projected, others, counted)
    if reason is None and found is None:
        reason = ENDLESS
    terms = _Terms(
        undecided=undecided,
        trials=trials or [Trial(value=1.0) for _ in projected],
        host_spread=host_spread,
        inflation=inflation,
        confidence=confidence,
    )
    seconds, usd = _intervals([each for _, each in projected], means or (None, None), found, terms)
    count = first.run.cell.settings.instance_count
    return Prediction(
        trials=len(projected),
        confidence=confidence,
        seconds=seconds,
        usd=usd,
        interruptions_per_hour=counted.per_instance_hour * count if counted else 0.0,
        reason=reason,
    )


def _intervals(
    projections: Sequence[Projection],
    means: tuple[float | None, float | None],
    incidents: tuple[Incidents, Incidents] | None,
    terms: _Terms,
) -> tuple[Interval | None, Interval | None]:
    """Intervals of seconds and of cost; None without ``incidents``, or if the cost of a trial is unknown."""
    if incidents is None:
        return None, None
    costs = [float(each.usd) for each in projections if each.usd]
    seconds = terms.interval([each.seconds for each in projections], means[0], incidents[0])
    return seconds, terms.interval(costs, means[1], incidents[1]) if len(costs) == len(projections) else None


def _why_not(projected: Sequence[tuple[RunResult, Projection]]) -> str | None:
    """Why the trials don't tell how a later run differs from them."""
    count = len(projected)
    unsteady = sum(
        result.measured is not None and not result.measured.steady_state.is_reached for result, _ in projected
    )
    if unsteady and 2 * unsteady >= count:
        return f"{unsteady} of {count} trials were not steady"
    without_time = sum(projection.seconds <= 0 for _, projection in projected)
    if without_time:
        return f"{without_time} of {count} trials have no time to project: SageMaker reported 0 s"
    return None if count > 1 else "one trial shows no spread between runs"


def _expect(
    projected: Sequence[tuple[RunResult, Projection]], others: Sequence[RunResult], hazard: Hazard | None
) -> tuple[Incidents, Incidents] | None:
    """What is added to seconds and to cost; None if a run would hardly ever end."""
    results = [result for result, _ in projected]
    success = measure_success([*results, *others])
    share = success.successes / success.attempts if success.successes else 1.0
    exposures = [each for result in results if (each := exposure_of(result)) is not None]
    seconds, usd = (expect_incidents(exposures, hazard, share, is_wall=is_wall) for is_wall in (True, False))
    return None if seconds is None or usd is None else (seconds, usd)
