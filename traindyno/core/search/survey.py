"""Predictions for every cell from the trials so far: its chance of being better than the best, and a trial's gain."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import erfc, exp, inf, log, pi, sqrt
from statistics import variance

from traindyno.core.search.fit import NormalPrior, Priors, WeightedProcess, fit
from traindyno.core.search.gaussian_process import Observation, PointPosterior
from traindyno.core.search.space import Space

# A cell stays in a search while the probability that it is better by more than the tolerance exceeds this.
LEAST_CHANCE = 0.01
# Identical runs on dedicated hardware differ by 1 to 5 %.
USUAL_NOISE, NOISE_DEGREES = 0.015, 4
USUAL_SPREAD, LEAST_SPREAD = 0.3, 0.02
# Priors of the model of success: a Gaussian process over the labels +1 (a trial succeeded) and -1 (it failed).
LABEL_PRIORS = Priors(variance=NormalPrior(mean=0.0, deviation=0.5), noise=NormalPrior(mean=log(0.05), deviation=0.5))
# One failure does not show its cause: another cell still works with this probability, which falls with each failure.
FIRST_DOUBT = 0.25
# The certainty of a label for another cell that is identical in the model.
LABEL_VARIANCE = 0.25
QUANTILE = 1.959964


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCell:
    """A cell with at least one measured trial. ``value``: what the goal minimises; ``cost``: of a trial, in any unit;
    ``limited``: what the goal limits. ``may_win``: the cell may be recommended.
    """

    value: float
    trials: int
    cost: float
    limited: float | None = None
    may_win: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CellForecast:
    """``ratio`` is the cell ÷ the best one, with its 95 % interval; less is better.

    ``better`` is the probability that it is better than the best by more than the tolerance, ``works`` that it
    neither fails nor breaks the goal's limit. ``gain`` is the expected improvement beyond the tolerance, of the
    logarithm; ``cost`` that of a trial.
    """

    ratio: float
    low: float
    high: float
    better: float
    works: float
    gain: float
    cost: float

    @property
    def chance(self) -> float:
        return self.better * self.works

    @property
    def gain_per_cost(self) -> float:
        return self.gain * self.works / self.cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """``best``: index of the measured cell that is best by the model; None if no cell that may win was measured.
    ``forecasts``: for each cell, in the order of the space's points; without a best cell they contain only ``works``.
    """

    best: int | None
    forecasts: tuple[CellForecast, ...]


def survey_cells(
    space: Space,
    seen: Mapping[int, MeasuredCell],
    failed: Sequence[int],
    *,
    tolerance: float,
    limit: float | None = None,
    replicates: Sequence[Sequence[float]] = (),
) -> Survey:
    """``seen`` and ``failed`` by the index of the cell. ``replicates``: values of cells with several trials."""
    works = _success(space, seen, failed)
    if not seen:
        return Survey(best=None, forecasts=tuple(map(_unknown, works)))
    if limit is not None:
        limited = {index: each.limited for index, each in seen.items() if each.limited is not None}
        kept = _within(space, limited, limit)
        works = [one * other for one, other in zip(works, kept, strict=True)]
    values = {index: log(each.value) for index, each in seen.items()}
    observations = [
        Observation(point=space.points[index], value=values[index], trials=seen[index].trials) for index in sorted(seen)
    ]
    found = _Posteriors.of(space, fit(space.axes, observations, _priors(list(values.values()), replicates)))
    best = min((index for index in sorted(seen) if _may_win(seen[index], limit)), key=found.mean, default=None)
    costs = found.costs(seen)
    if best is None:
        return Survey(best=None, forecasts=tuple(map(_unknown, works, costs)))
    zone = log(1 + tolerance)
    forecasts = (found.forecast(index, best, zone, works[index], costs[index]) for index in range(len(space.points)))
    return Survey(best=best, forecasts=tuple(forecasts))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Posteriors:
    """The posteriors of every cell, by each of the weighted models."""

    models: tuple[WeightedProcess, ...]
    points: tuple[tuple[PointPosterior, ...], ...]

    @classmethod
    def of(cls, space: Space, models: tuple[WeightedProcess, ...]) -> "_Posteriors":
        return cls(models=models, points=tuple(tuple(map(each.process.posterior, space.points)) for each in models))

    def mean(self, index: int) -> float:
        return sum(model.weight * found[index].mean for model, found in zip(self.models, self.points, strict=True))

    def costs(self, seen: Mapping[int, MeasuredCell]) -> list[float]:
        """The cost of one trial of each cell, by the model with the largest weight."""
        logs = [log(seen[index].cost) for index in sorted(seen)]
        return [exp(value) for value in self.models[0].process.mean_of(logs, self.points[0])]

    def forecast(self, index: int, best: int, zone: float, works: float, cost: float) -> CellForecast:
        """The forecast is a mixture of normal distributions of the ratio's logarithm."""
        mean = square = better = gain = 0.0
        for model, found in zip(self.models, self.points, strict=True):
            one, other = found[index], found[best]
            difference = one.mean - other.mean
            spread = one.variance + other.variance - 2 * model.process.covariance(one, other)
            deviation = sqrt(max(spread, 0.0)) if index != best else 0.0
            mean += model.weight * difference
            square += model.weight * (difference**2 + deviation**2)
            better += model.weight * _share_below(-zone, difference, deviation)
            gain += model.weight * _expected_below(-zone, difference, deviation)
        reach = QUANTILE * sqrt(max(square - mean**2, 0.0))
        return CellForecast(
            ratio=exp(mean),
            low=exp(mean - reach),
            high=exp(mean + reach),
            better=better,
            works=works,
            gain=gain,
            cost=cost,
        )


def _may_win(seen: MeasuredCell, limit: float | None) -> bool:
    return seen.may_win and (limit is None or seen.limited is None or seen.limited <= limit)


def _priors(values: Sequence[float], replicates: Sequence[Sequence[float]]) -> Priors:
    """The noise comes from the repeated trials and from a usual value, which counts as a few trials."""
    groups = [[log(value) for value in group] for group in replicates if len(group) > 1]
    degrees = NOISE_DEGREES + sum(len(group) - 1 for group in groups)
    squares = NOISE_DEGREES * USUAL_NOISE**2 + sum(variance(group) * (len(group) - 1) for group in groups)
    spread = variance(values) if len(values) > 2 else USUAL_SPREAD**2
    return Priors(
        variance=NormalPrior(mean=log(max(spread, LEAST_SPREAD**2)), deviation=1.0),
        noise=NormalPrior(mean=log(squares / degrees), deviation=sqrt(2 / degrees)),
    )


def _success(space: Space, seen: Mapping[int, MeasuredCell], failed: Sequence[int]) -> list[float]:
    """Classification by regression on labels (Rasmussen and Williams 2006, section 6.5)."""
    if not failed:
        return [1.0] * len(space.points)
    labels = {**dict.fromkeys(seen, 1.0), **dict.fromkeys(failed, -1.0)}
    observations = [Observation(point=space.points[index], value=labels[index]) for index in sorted(labels)]
    models = fit(space.axes, observations, LABEL_PRIORS)
    least = FIRST_DOUBT / len(failed) ** 2
    return [
        max(least, sum(model.weight * _probability_positive(model.process.posterior(point)) for model in models))
        for point in space.points
    ]


def _probability_positive(found: PointPosterior) -> float:
    return 1 - _upper_tail(found.mean / sqrt(found.variance + LABEL_VARIANCE))


def _within(space: Space, limited: Mapping[int, float], limit: float) -> list[float]:
    """The probability that each cell meets the goal's limit."""
    if not limited:
        return [1.0] * len(space.points)
    values = {index: log(value) for index, value in limited.items()}
    observations = [Observation(point=space.points[index], value=values[index]) for index in sorted(values)]
    found = _Posteriors.of(space, fit(space.axes, observations, _priors(list(values.values()), ())))
    return [
        sum(
            model.weight * _share_below(log(limit), points[index].mean, sqrt(points[index].variance))
            for model, points in zip(found.models, found.points, strict=True)
        )
        for index in range(len(space.points))
    ]


def _unknown(works: float, cost: float = 1.0) -> CellForecast:
    return CellForecast(ratio=1.0, low=0.0, high=inf, better=1.0, works=works, gain=1.0, cost=cost)


def _upper_tail(z: float) -> float:
    """The probability that a standard normal value is above ``z``."""
    return erfc(z / sqrt(2)) / 2


def _share_below(bound: float, mean: float, deviation: float) -> float:
    return _upper_tail((mean - bound) / deviation) if deviation else float(mean < bound)


def _expected_below(bound: float, mean: float, deviation: float) -> float:
    """The expected improvement below ``bound`` (Jones, Schonlau and Welch 1998)."""
    if not deviation:
        return max(0.0, bound - mean)
    z = (bound - mean) / deviation
    return (bound - mean) * _upper_tail(-z) + deviation * exp(-z * z / 2) / sqrt(2 * pi)
