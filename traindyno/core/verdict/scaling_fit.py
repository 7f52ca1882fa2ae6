"""How a workload's time depends on the number of instances: a fitted curve, its prediction, and the size from which
another instance brings no gain.

T(N, w) = serial + compute/N + communication(N) + (loading/N + shared loading) / (1 + w), where w is the number of
loader workers of a process. The curve is fitted to the training time of the whole workload, with relative errors.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import log2, sqrt

from traindyno.core.costs.projection import known_cost_usd
from traindyno.core.statistics.estimates import CONFIDENCE, LEAST_COUNT, Interval
from traindyno.core.statistics.least_squares import Fit, fit_not_negative
from traindyno.core.statistics.student_t import t_quantile

TERMS = ("serial", "compute / N", "communication", "loading / N", "shared loading")
COMMUNICATIONS: dict[str, Callable[[float], float]] = {"log2(N)": log2, "N": float}
# How far beyond the largest measured size the curve is evaluated.
MOST_TIMES_LARGEST = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedTime:
    """One cell. ``seconds``: training time of the whole workload. ``variation``: of its trials, None with one."""

    cell_id: str
    instance_count: int
    loader_workers: int
    seconds: float
    variation: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingPrediction:
    """``interval``: 95 % for a cell of this size, None without a spread to compute it from."""

    instance_count: int
    loader_workers: int
    seconds: float
    interval: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """The largest size, predicted from the others. ``error`` is predicted ÷ measured − 1."""

    predicted: ScalingPrediction
    measured_seconds: float

    @property
    def error(self) -> float:
        return self.predicted.seconds / self.measured_seconds - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StepWork:
    """The work of a curve whose cells do the same in a step: its ``samples``, and the workload's number of ``steps``.

    ``usd_per_instance_hour`` is None where no price is known.
    """

    samples: int
    steps: float
    usd_per_instance_hour: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingFit:
    """The fit to cells that differ in instances and loader workers only, or to cells with the same global batch."""

    cell_ids: tuple[str, ...]
    #: Function of the communication term.
    communication: str
    #: Term → its coefficient in seconds; 0 if the measurements show no such term.
    seconds_of_terms: Mapping[str, float]
    relative_residual: float
    held_out: tuple[HeldOut, ...]
    #: Predictions for twice the largest size, for each number of loader workers.
    next_sizes: tuple[ScalingPrediction, ...]
    #: With one more instance the time no longer falls; None if that is beyond ``followed_to``.
    fastest_instances: int | None
    #: With one more instance the cost of a sample (and of a step with the same work) rises by more than the tolerance.
    cheapest_instances: int | None
    #: Number of instances up to which the curve was followed.
    followed_to: int
    #: The number for which the fastest and cheapest hold: the most at the largest size.
    loader_workers: int = 0
    #: Step of cells with the same global batch, which they divide; None if a step grows with the instances.
    step: StepWork | None = None

    def step_seconds(self, instances: int) -> float | None:
        """None where the work of a step grows with the instances."""
        return self.seconds(instances, self.loader_workers) / self.step.steps if self.step else None

    def step_usd(self, instances: int) -> Decimal | None:
        """The cost of a step on all instances together; None where no price is known, too."""
        seconds = self.step_seconds(instances)
        if seconds is None or self.step is None:
            return None
        return known_cost_usd(seconds, instances, self.step.usd_per_instance_hour)

    def seconds(self, instances: int, workers: int) -> float:
        """The fitted training time of the whole workload."""
        values = dict(zip(TERMS, _row(instances, workers, self.communication), strict=True))
        return sum(self.seconds_of_terms[name] * value for name, value in values.items())


def fit_scaling(times: Sequence[SizedTime], *, tolerance: float, step: StepWork | None = None) -> ScalingFit | None:
    """None with fewer than three sizes. ``tolerance``: the share by which a cost may rise and still count as equal.

    ``step``: where all cells do the same work in a step.
    """
    sizes = sorted({each.instance_count for each in times})
    curve = _fit_curve(times) if len(sizes) >= LEAST_COUNT else None
    if curve is None:
        return None
    workers = max(each.loader_workers for each in times if each.instance_count == sizes[-1])
    limit = sizes[-1] * MOST_TIMES_LARGEST
    return ScalingFit(
        cell_ids=tuple(each.cell_id for each in times),
        communication=curve.communication,
        seconds_of_terms=dict(zip(TERMS, curve.fit.coefficients, strict=True)),
        relative_residual=curve.fit.residual,
        held_out=tuple(_hold_out(times, sizes)),
        next_sizes=tuple(
            curve.predict(2 * sizes[-1], count) for count in sorted({each.loader_workers for each in times})
        ),
        fastest_instances=curve.fastest(sizes[0], limit, workers),
        cheapest_instances=curve.cheapest(sizes[0], limit, workers, tolerance),
        followed_to=limit,
        loader_workers=workers,
        step=step,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Curve:
    communication: str
    fit: Fit
    spread: float | None

    def seconds(self, instances: int, workers: int) -> float:
        return self.fit.at(_row(instances, workers, self.communication))

    def predict(self, instances: int, workers: int) -> ScalingPrediction:
        seconds = self.seconds(instances, workers)
        return ScalingPrediction(
            instance_count=instances,
            loader_workers=workers,
            seconds=seconds,
            interval=self._interval(instances, workers, seconds),
        )

    def _interval(self, instances: int, workers: int, seconds: float) -> Interval | None:
        """The interval of one cell: from its own scatter and that of the curve, both relative to the time."""
        if self.spread is None:
            return None
        relative = [value / seconds for value in _row(instances, workers, self.communication)]
        width = t_quantile((1 + CONFIDENCE) / 2, self.fit.degrees_of_freedom)
        width *= self.spread * sqrt(1 + self.fit.leverage(relative))
        return Interval(low=max(0.0, seconds * (1 - width)), high=seconds * (1 + width), confidence=CONFIDENCE)

    def fastest(self, smallest: int, limit: int, workers: int) -> int | None:
        for instances in range(smallest, limit):
            if self.seconds(instances + 1, workers) >= self.seconds(instances, workers):
                return instances
        return None

    def cheapest(self, smallest: int, limit: int, workers: int, tolerance: float) -> int | None:
        least = min(instances * self.seconds(instances, workers) for instances in range(smallest, limit + 1))
        for instances in range(smallest, limit):
            if (instances + 1) * self.seconds(instances + 1, workers) > least * (1 + tolerance):
                return instances
        return None


def _fit_curve(times: Sequence[SizedTime]) -> _Curve | None:
    """The curve with the communication function that leaves the smallest residual; the first if both are equal."""
    curves = []
    for name in COMMUNICATIONS:
        rows = [
            [value / each.seconds for value in _row(each.instance_count, each.loader_workers, name)] for each in times
        ]
        fit = fit_not_negative(rows, [1.0] * len(rows))
        if fit is not None:
            curves.append(_Curve(communication=name, fit=fit, spread=_spread(fit, times)))
    return min(curves, key=lambda curve: round(curve.fit.residual, 6), default=None)


def _spread(fit: Fit, times: Sequence[SizedTime]) -> float | None:
    """Relative, for one cell's time: the residual of the curve, and at least the scatter of its trials."""
    variations = [each.variation for each in times if each.variation is not None]
    trials = sqrt(sum(value * value for value in variations) / len(variations)) if variations else 0.0
    return max(fit.residual, trials) or None


def _hold_out(times: Sequence[SizedTime], sizes: Sequence[int]) -> Iterator[HeldOut]:
    """One prediction for each number of loader workers at the largest size."""
    rest = [each for each in times if each.instance_count < sizes[-1]]
    curve = _fit_curve(rest) if len(sizes) > LEAST_COUNT else None
    if curve is None:
        return
    for each in times:
        if each.instance_count == sizes[-1]:
            predicted = curve.predict(each.instance_count, each.loader_workers)
            yield HeldOut(predicted=predicted, measured_seconds=each.seconds)


def _row(instances: int, workers: int, communication: str) -> tuple[float, ...]:
    loading = 1 / (1 + workers)
    return (1.0, 1 / instances, COMMUNICATIONS[communication](instances), loading / instances, loading)
