"""Means, ratios and their intervals over trials. Everything is done on logarithms.

Rates, times and costs are positive, their noise is a share of them, and what is claimed is a ratio. On logarithms
Student's and Welch's intervals hold for the geometric mean and for ratios of it, an interval never reaches nought,
and it reads the same for a rate as for the time per sample. One trial has no interval: its spread is unknown.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, log, sqrt
from statistics import fmean, stdev, variance

from traindyno.core.measurement.student_t import f_upper_p, t_half_width, two_sided_p

CONFIDENCE = 0.95
SMALL_COUNT = 3
UNEQUAL_SPREAD_P = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    low: float
    high: float
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """``mean`` is geometric; ``variation`` is the coefficient of variation: standard deviation ÷ arithmetic mean."""

    mean: float
    count: int
    variation: float | None
    interval: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledSpread:
    """The variance of log values within groups, all groups taken together."""

    variance: float
    degrees_of_freedom: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """``ratio`` is the first mean ÷ the second. Interval and ``p`` (two-sided, unadjusted) need two trials of each."""

    ratio: float
    interval: Interval | None
    p: float | None
    spread: float | None


def pool_spread(groups: Sequence[Sequence[float]]) -> PooledSpread | None:
    """From all groups of two values or more; None if there is none."""
    usable = [[log(value) for value in group] for group in groups if len(group) > 1]
    degrees = sum(len(group) - 1 for group in usable)
    if not degrees:
        return None
    squares = sum(variance(group) * (len(group) - 1) for group in usable)
    return PooledSpread(variance=squares / degrees, degrees_of_freedom=degrees)


def estimate(
    values: Sequence[float], *, pooled: PooledSpread | None = None, confidence: float = CONFIDENCE
) -> Estimate:
    """The mean of one cell's trials. ``pooled`` helps where the cell's own few trials tell little of their spread."""
    logs = [log(value) for value in values]
    center = fmean(logs)
    spread = _spread(logs, pooled)
    if spread is None:
        return Estimate(mean=exp(center), count=len(logs), variation=None, interval=None)
    reach = t_half_width(sqrt(spread.variance / len(logs)), spread.degrees_of_freedom, confidence)
    return Estimate(
        mean=exp(center),
        count=len(logs),
        variation=stdev(values) / fmean(values),
        interval=Interval(low=exp(center - reach), high=exp(center + reach), confidence=confidence),
    )


def compare(
    first: Sequence[float],
    second: Sequence[float],
    *,
    pooled: PooledSpread | None = None,
    confidence: float = CONFIDENCE,
) -> Comparison:
    """Welch's comparison of two cells' means, with the degrees of freedom after Satterthwaite."""
    logs = [[log(value) for value in values] for values in (first, second)]
    difference = fmean(logs[0]) - fmean(logs[1])
    spreads = [_spread(values, pooled) for values in logs]
    if spreads[0] is None or spreads[1] is None:
        return Comparison(ratio=exp(difference), interval=None, p=None, spread=None)
    parts = [spread.variance / len(values) for spread, values in zip(spreads, logs, strict=True) if spread]
    error = sqrt(sum(parts))
    degrees = _degrees_of_freedom(parts, spreads[0], spreads[1])
    reach = t_half_width(error, degrees, confidence)
    return Comparison(
        ratio=exp(difference),
        interval=Interval(low=exp(difference - reach), high=exp(difference + reach), confidence=confidence),
        p=two_sided_p(difference / error, degrees) if error else float(difference == 0),
        spread=sqrt((spreads[0].variance + spreads[1].variance) / 2),
    )


def _spread(logs: Sequence[float], pooled: PooledSpread | None) -> PooledSpread | None:
    """The group's own variance, or the pooled one where the group is small and doesn't contradict it."""
    if len(logs) < 2:
        return None
    own = PooledSpread(variance=variance(logs), degrees_of_freedom=len(logs) - 1)
    if pooled is None or len(logs) > SMALL_COUNT or pooled.degrees_of_freedom <= own.degrees_of_freedom:
        return own
    others = _without(pooled, own)
    f = own.variance / others.variance if others.variance else inf if own.variance else 1.0
    is_wider = f_upper_p(f, own.degrees_of_freedom, others.degrees_of_freedom) < UNEQUAL_SPREAD_P
    return own if is_wider else pooled


def _without(pooled: PooledSpread, own: PooledSpread) -> PooledSpread:
    degrees = pooled.degrees_of_freedom - own.degrees_of_freedom
    squares = pooled.variance * pooled.degrees_of_freedom - own.variance * own.degrees_of_freedom
    return PooledSpread(variance=max(0.0, squares) / degrees, degrees_of_freedom=degrees)


def _degrees_of_freedom(parts: Sequence[float], first: PooledSpread, second: PooledSpread) -> float:
    if first is second:  # both are the pooled one
        return first.degrees_of_freedom
    denominator = sum(part**2 / spread.degrees_of_freedom for part, spread in zip(parts, (first, second), strict=True))
    return sum(parts) ** 2 / denominator if denominator else min(first.degrees_of_freedom, second.degrees_of_freedom)
