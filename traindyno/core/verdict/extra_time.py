"""What a cell's whole work takes beyond one run without incident: its own failures, and capacity that fails."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log, log1p
from statistics import fmean, variance
from typing import Protocol

from traindyno.core.costs.hazard import Hazard, UnevenFaults
from traindyno.core.costs.interruptions import MOST_EXPOSURE, Exposure, exposure_of
from traindyno.core.costs.success import measure_success
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.statistics.estimates import NO_RANGE, Range, range_to
from traindyno.core.verdict.quantity import (
    Quantity,
    SecondsToTarget,
    UsdToTarget,
    is_paid_again,
    projected_seconds,
)

# The logarithm of the factor of a run that would hardly ever end, at the upper end of its rate.
ENDLESS_FACTOR = MOST_EXPOSURE


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraTime:
    """The factor by which a quantity is larger, as a logarithm.

    ``own_variance`` is that of the cell's own failures, ``further_variance`` what interruptions add to that of the
    trials' mean. ``low`` and ``high`` are the factor at the ends of what is known of the ``hazard``, which all cells on
    one instance type and purchase option share. ``is_endless``: at the mean of the hazard a run would hardly ever end;
    ``log_factor`` is then that of the low end. ``faults``: what is added if faults that hit the cell more than others
    of its type are its own.
    """

    log_factor: float = 0.0
    own_variance: float = 0.0
    further_variance: float = 0.0
    low: float = 0.0
    high: float = 0.0
    hazard: Hazard | None = None
    is_endless: bool = False
    faults: Range = NO_RANGE

    @property
    def variance(self) -> float:
        return self.own_variance + self.further_variance

    @property
    def hazard_range(self) -> Range:
        """What is unknown of the rate, beside ``log_factor``."""
        return Range(low=min(0.0, self.low - self.log_factor), high=max(0.0, self.high - self.log_factor))

    @property
    def range(self) -> Range:
        return self.hazard_range.plus(self.faults)

    def against(self, other: "ExtraTime") -> tuple[float, float, Range]:
        """The ratio to the other cell's factor: its logarithm, its variance, and its range.

        Of a common hazard, each value counts for both cells at once. Lead and noise grow with it alike, so that it adds
        nothing to the noise.
        """
        shift = self.log_factor - other.log_factor
        if self.hazard is None or other.hazard is None or self.hazard.key != other.hazard.key:
            return shift, self.variance + other.variance, self.range.plus(other.range.inverse())
        ends = (self.low - other.low - shift, self.high - other.high - shift)
        reach = Range(low=min(0.0, *ends), high=max(0.0, *ends)).plus(self.faults).plus(other.faults.inverse())
        return shift, self.own_variance + other.own_variance, reach


class Trials(Protocol):
    """The part of a cell's trials that counts here."""

    @property
    def measured(self) -> Sequence[RunResult]: ...

    @property
    def others(self) -> Sequence[RunResult]: ...

    @property
    def hazard(self) -> Hazard | None: ...

    @property
    def uneven_faults(self) -> UnevenFaults | None: ...


def extra_time(trials: Trials, quantity: Quantity) -> ExtraTime | None:
    """None if a run would hardly ever end even at the low end of what is known of the hazard.

    Nothing is added to quantities that are not paid again, such as rates.
    """
    hazard = trials.hazard
    if not is_paid_again(quantity) or not trials.measured:
        return ExtraTime()
    failures = _own_failures([*trials.measured, *trials.others], trials.uneven_faults)
    known = exposures(trials.measured, quantity)
    if hazard is None or hazard.is_left_out or not known:
        return failures
    least, expected, most = (
        _factors(known, hazard, rate, quantity) for rate in (hazard.low, hazard.per_instance_hour, hazard.high)
    )
    if least is None:
        return None
    factors = least if expected is None else expected
    low, high = (failures.log_factor + (ENDLESS_FACTOR if end is None else fmean(end)) for end in (least, most))
    return ExtraTime(
        log_factor=failures.log_factor + fmean(factors),
        own_variance=failures.own_variance,
        further_variance=_further_variance([value for value, _ in known], factors),
        low=low,
        high=high,
        hazard=hazard,
        is_endless=expected is None,
        faults=failures.faults,
    )


def exposures(measured: Sequence[RunResult], quantity: Quantity) -> list[tuple[float, Exposure]]:
    """The trials' values of the quantity, each with what interruptions add to it."""
    target = quantity.target if isinstance(quantity, SecondsToTarget | UsdToTarget) else None
    found = ((quantity(result), exposure_of(result, target)) for result in measured)
    return [(value, each) for value, each in found if value is not None and value > 0 and each is not None]


def _own_failures(results: Sequence[RunResult], uneven: UnevenFaults | None) -> ExtraTime:
    """1 ÷ the success rate, which is binomial.

    The variance of its logarithm is (1 - p) ÷ (n p) by the delta method, with p by Jeffreys.
    """
    success = measure_success(results)
    if not success.successes:
        return ExtraTime()
    factor = log(success.attempts / success.successes)
    p = (success.successes + 0.5) / (success.attempts + 1)
    return ExtraTime(
        log_factor=factor,
        own_variance=(1 - p) / (success.attempts * p) if factor else 0.0,
        low=factor,
        high=factor,
        faults=range_to(log1p(uneven.count / success.attempts)) if uneven else NO_RANGE,
    )


def _factors(
    known: Sequence[tuple[float, Exposure]], hazard: Hazard, per_instance_hour: float, quantity: Quantity
) -> list[float] | None:
    """The logarithm of each trial's factor at this rate; None if the run of one would hardly ever end."""
    is_wall = quantity is projected_seconds or isinstance(quantity, SecondsToTarget)
    at_rate = replace(hazard, per_instance_hour=per_instance_hour)
    delays = [each.delay(at_rate) for _, each in known]
    found = [
        log(each.wall_factor(delay) if is_wall else each.training_factor(delay))
        for (_, each), delay in zip(known, delays, strict=True)
        if delay is not None
    ]
    return found if len(found) == len(known) else None


def _further_variance(values: Sequence[float], factors: Sequence[float]) -> float:
    """Longer runs are interrupted more often, so that the spread of the trials grows: by how much, for their mean."""
    if len(values) < 2:
        return 0.0
    logs = [log(value) for value in values]
    longer = [value + factor for value, factor in zip(logs, factors, strict=True)]
    return max(0.0, variance(longer) - variance(logs)) / len(logs)
