"""From a few trials to a mean, a ratio of two means, and their intervals.

Rates, times and costs are compared as ratios, so everything is computed on logarithms: the mean is
geometric, and the result is the same for a rate as for the time per sample. One trial has no
interval: its spread is unknown.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import exp, log, sqrt
from statistics import fmean, stdev

from traindyno.figures.beyond import NO_RANGE, Range
from traindyno.figures.distributions import (
    SIGNIFICANCE,
    t_half_width,
    t_quantile,
    two_sided_p,
)
from traindyno.figures.log_means import LogMean, log_mean, variance

CONFIDENCE = 1 - SIGNIFICANCE
_TAIL = (1 - CONFIDENCE) / 2
# Logarithms of the least and of the most that a mean, a ratio or an end of an interval is said to
# be: a float holds no exponential of 710.
_MOST_LOG = 700.0


def _power(logarithm: float) -> float:
    return exp(max(-_MOST_LOG, min(_MOST_LOG, logarithm)))


def mean_of(values: Iterable[float | None]) -> float | None:
    """The arithmetic mean of the known ones."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    low: float
    high: float
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The geometric mean of a cell's trials, with its interval.

    ``variation`` is the coefficient of variation: standard deviation ÷ arithmetic mean.
    """

    mean: float
    count: int
    variation: float | None
    interval: Interval | None

    def within(self, run: Interval | None) -> "Estimate":
        """The mean is known at least as well as one run: a look's share of the error doesn't make
        it wider.
        """
        if self.interval is None or run is None:
            return self
        low = max(self.interval.low, run.low)
        high = min(self.interval.high, run.high)
        return replace(
            self,
            interval=replace(self.interval, low=min(low, self.mean), high=max(high, self.mean)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """The correction of the best cell's intervals for its selection: that of one run reaches by
    ``shift`` further.

    It is a logarithm. The tails are the error probabilities of its interval's two ends.
    """

    shift: float
    upper_tail: float
    lower_tail: float

    def of_rate(self) -> "Correction":
        """The same for a quantity of which more is better."""
        return Correction(shift=-self.shift, upper_tail=self.lower_tail, lower_tail=self.upper_tail)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two cells' means compared: ``ratio`` is the first ÷ the second.

    The rest is None below two trials of each. ``standard_error`` is that of the ratio's logarithm.
    ``p`` is two-sided, of no difference, for this pair alone. ``interval`` is filled in by
    ``with_interval``. ``range`` is what the trials can't decide: all that is said of the ratio,
    ``p`` included, holds wherever the truth lies in it.
    """

    ratio: float
    standard_error: float | None = None
    degrees_of_freedom: float | None = None
    p: float | None = None
    interval: Interval | None = None
    range: Range = NO_RANGE
    #: The part of the variance between hosts of cells that ran on one draw of them: more trials
    #: there leave it as it is. None where the comparison has no such part.
    host_variance: float | None = None

    def with_interval(self) -> "Comparison":
        """The same ratio with its two-sided 95 % interval."""
        return replace(self, interval=self.interval_with(_TAIL, _TAIL))

    def interval_with(self, lower_tail: float, upper_tail: float) -> Interval | None:
        """The ratio is below ``low`` with probability ``lower_tail`` at most, above ``high`` with
        ``upper_tail``.
        """
        return interval_of(self.difference, self.range, lower_tail, upper_tail)

    def p_at_least(self, ratio: float) -> float | None:
        """The one-sided p value that the true ratio is ``ratio`` or more; None if the spread is
        unknown.
        """
        return self._tail(log(ratio) - log(self.ratio) - self.range.high)

    def p_at_most(self, ratio: float) -> float | None:
        """The one-sided p value that the true ratio is ``ratio`` or less; None if the spread is
        unknown.
        """
        return self._tail(log(self.ratio) + self.range.low - log(ratio))

    def _tail(self, distance: float) -> float | None:
        """The probability of an error of ``distance`` or more, in one direction."""
        if self.standard_error is None or self.degrees_of_freedom is None:
            return None
        if self.standard_error == 0:
            return 0.0 if distance > 0 else 1.0
        tail = two_sided_p(distance / self.standard_error, self.degrees_of_freedom) / 2
        return tail if distance > 0 else 1 - tail

    @property
    def difference(self) -> LogMean:
        """The logarithm of the ratio, as the trials tell it."""
        error = self.standard_error
        return LogMean(
            mean=log(self.ratio),
            variance=None if error is None else error**2,
            degrees_of_freedom=self.degrees_of_freedom,
            host_variance=self.host_variance,
        )

    def without_range(self) -> "Comparison":
        return self if self.range.is_empty else compared(self.difference)

    def with_range(self, undecided: Range) -> "Comparison":
        """The comparison with what is undecided: ``p`` is taken at the point of the range that is
        nearest to no difference.
        """
        if undecided.is_empty or self.p is None:
            return self
        nearest = log(self.ratio) + (undecided.high if self.ratio < 1 else undecided.low)
        p: float | None = 1.0
        if nearest * log(self.ratio) > 0:
            p = compared(replace(self.difference, mean=nearest)).p
        return replace(self, range=undecided, p=p)


def estimate(values: Sequence[float]) -> Estimate:
    """The mean of one cell's trials (positive), with Student's t interval."""
    return estimate_of_mean(log_mean(values), values)


def estimate_of_mean(
    mean: LogMean,
    values: Sequence[float],
    *,
    tails: tuple[float, float] | None = None,
    undecided: Range = NO_RANGE,
) -> Estimate:
    """The mean of ``values`` with its interval.

    Args:
        mean: of the logarithms of ``values``.
        tails: probabilities below and above the interval; None for equal ones.
        undecided: what widens the interval.
    """
    lower, upper = tails or (_TAIL, _TAIL)
    interval = interval_of(mean, undecided, lower, upper)
    return Estimate(
        mean=_power(mean.mean),
        count=len(values),
        variation=sqrt(variance(values)) / fmean(values) if interval else None,
        interval=interval,
    )


def interval_of(
    mean: LogMean, undecided: Range, lower_tail: float, upper_tail: float
) -> Interval | None:
    """None if the spread is unknown."""
    if mean.variance is None or mean.degrees_of_freedom is None:
        return None
    error = sqrt(mean.variance)
    down, up = (
        t_quantile(1 - tail, mean.degrees_of_freedom) * error for tail in (lower_tail, upper_tail)
    )
    return Interval(
        low=_power(mean.mean + undecided.low - down),
        high=_power(mean.mean + undecided.high + up),
        confidence=1 - lower_tail - upper_tail,
    )


def estimate_share(shares: Sequence[float]) -> Estimate:
    """The arithmetic mean of shares such as accuracies, which may be 0, with Student's t interval
    within 0 and 1.
    """
    mean = fmean(shares)
    count = len(shares)
    if count < 2:
        return Estimate(mean=mean, count=count, variation=None, interval=None)
    spread = stdev(shares)
    reach = t_half_width(spread / sqrt(count), count - 1, CONFIDENCE)
    return Estimate(
        mean=mean,
        count=count,
        variation=spread / mean if mean else None,
        interval=Interval(
            low=max(0.0, mean - reach), high=min(1.0, mean + reach), confidence=CONFIDENCE
        ),
    )


def compare(first: Sequence[float], second: Sequence[float]) -> Comparison:
    """Welch's comparison (1947) of two cells' means, each with its own variance."""
    difference = log_mean(first).minus(log_mean(second))
    return compared(difference.told_by([len(first), len(second)])).with_interval()


def compared(difference: LogMean) -> Comparison:
    """The comparison whose ratio has this logarithm.

    Without any spread (a replay's trials), a difference has p 0, and equality p 1.
    """
    apart = difference.mean
    comparison = Comparison(ratio=_power(apart), host_variance=difference.host_variance)
    degrees = difference.degrees_of_freedom
    if difference.variance is None or degrees is None:
        return comparison
    error = sqrt(difference.variance)
    p = two_sided_p(apart / error, degrees) if error else float(apart == 0)
    return replace(comparison, standard_error=error, degrees_of_freedom=degrees, p=p)


def comparison_of(
    difference: float, variance_of_difference: float, degrees_of_freedom: float
) -> Comparison:
    """A comparison by its logarithm."""
    return compared(
        LogMean(
            mean=difference,
            variance=variance_of_difference,
            degrees_of_freedom=degrees_of_freedom,
        )
    )
