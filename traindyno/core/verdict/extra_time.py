"""What a cell's whole work takes beyond one run without incident: its own failures, and capacity that fails."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, log
from statistics import fmean, variance
from typing import Protocol

from traindyno.core.costs.hazard import Hazard
from traindyno.core.costs.interruptions import Exposure, exposure_of, seen_interruption
from traindyno.core.costs.success import measure_success
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.verdict.quantity import (
    Quantity,
    SecondsToTarget,
    UsdToTarget,
    is_paid_again,
    projected_seconds,
)

_STEP = 0.01  # of the logarithm of the rate, for the slope


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraTime:
    """The factor by which a quantity is larger, as a logarithm.

    ``own_variance`` is that part of its variance that no other cell shares. ``hazard_slope`` is its change with the
    logarithm of ``hazard``, which all cells on one instance type and purchase option share.
    """

    log_factor: float = 0.0
    own_variance: float = 0.0
    hazard_slope: float = 0.0
    hazard: Hazard | None = None

    @property
    def variance(self) -> float:
        return self.own_variance + (self.hazard_slope**2 * self.hazard.variance_of_log if self.hazard else 0.0)

    def difference(self, other: "ExtraTime") -> tuple[float, float]:
        """The logarithm of the ratio to the other cell's factor, and its variance: a common hazard counts once."""
        shift = self.log_factor - other.log_factor
        if self.hazard is None or other.hazard is None or self.hazard != other.hazard:
            return shift, self.variance + other.variance
        shared = (self.hazard_slope - other.hazard_slope) ** 2 * self.hazard.variance_of_log
        return shift, self.own_variance + other.own_variance + shared


class Trials(Protocol):
    """The part of a cell's trials that counts here."""

    @property
    def measured(self) -> Sequence[RunResult]: ...

    @property
    def others(self) -> Sequence[RunResult]: ...

    @property
    def hazard(self) -> Hazard | None: ...


def extra_time(trials: Trials, quantity: Quantity) -> ExtraTime | None:
    """None if a run would hardly ever end. Nothing is added to quantities that are not paid again, such as rates."""
    hazard = trials.hazard
    if not is_paid_again(quantity) or not trials.measured:
        return ExtraTime()
    failures = _own_failures([*trials.measured, *trials.others])
    known = exposures(trials.measured, quantity)
    if hazard is None or hazard.is_left_out or not known:
        return failures
    delays = [each.delay(hazard) for _, each in known]
    if None in delays:
        return None
    factors = _factors(known, hazard, quantity)
    slower, faster = (_factors(known, _times(hazard, exp(step)), quantity) for step in (-_STEP, _STEP))
    return ExtraTime(
        log_factor=failures.log_factor + fmean(factors),
        own_variance=failures.own_variance + _further_variance([value for value, _ in known], factors),
        hazard_slope=(fmean(faster) - fmean(slower)) / (2 * _STEP),
        hazard=hazard,
    )


def exposures(measured: Sequence[RunResult], quantity: Quantity) -> list[tuple[float, Exposure]]:
    """The trials' values of the quantity, each with what interruptions add to it."""
    target = quantity.target if isinstance(quantity, SecondsToTarget | UsdToTarget) else None
    seen = seen_interruption(measured)
    found = ((quantity(result), exposure_of(result, target, seen)) for result in measured)
    return [(value, each) for value, each in found if value is not None and value > 0 and each is not None]


def _own_failures(results: Sequence[RunResult]) -> ExtraTime:
    """1 ÷ the success rate, which is binomial.

    The variance of its logarithm is (1 - p) ÷ (n p) by the delta method, with p by Jeffreys.
    """
    success = measure_success(results)
    if not success.successes or success.successes == success.attempts:
        return ExtraTime()
    p = (success.successes + 0.5) / (success.attempts + 1)
    return ExtraTime(
        log_factor=log(success.attempts / success.successes), own_variance=(1 - p) / (success.attempts * p)
    )


def _times(hazard: Hazard, factor: float) -> Hazard:
    return replace(hazard, per_instance_hour=hazard.per_instance_hour * factor)


def _factors(known: Sequence[tuple[float, Exposure]], hazard: Hazard, quantity: Quantity) -> list[float]:
    """The logarithm of each trial's factor, without trials whose run would hardly ever end."""
    is_wall = quantity is projected_seconds or isinstance(quantity, SecondsToTarget)
    found = ((each, each.delay(hazard)) for _, each in known)
    return [
        log(each.wall_factor(delay) if is_wall else each.training_factor(delay))
        for each, delay in found
        if delay is not None
    ]


def _further_variance(values: Sequence[float], factors: Sequence[float]) -> float:
    """Longer runs are interrupted more often, so that the spread of the trials grows: by how much, for their mean."""
    if len(values) < 2:
        return 0.0
    logs = [log(value) for value in values]
    longer = [value + factor for value, factor in zip(logs, factors, strict=True)]
    return max(0.0, variance(longer) - variance(logs)) / len(logs)
