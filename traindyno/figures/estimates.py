"""From a few trials to a mean, a ratio of two means, and their intervals.

Rates, times and costs are compared as ratios, so everything is computed on logarithms: the mean is
geometric, and the result is the same for a rate as for the time per sample. One trial has no
interval: its spread is unknown.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import exp, fsum, inf, log, sqrt
from statistics import fmean, stdev

from traindyno.figures.distributions import (
    SIGNIFICANCE,
    t_half_width,
    t_quantile,
    two_sided_p,
)

CONFIDENCE = 1 - SIGNIFICANCE
_TAIL = (1 - CONFIDENCE) / 2
# The fewest values of which a spread is known, with two degrees of freedom.
LEAST_COUNT = 3
KNOWN = (
    1e9  # degrees of freedom of a variance that no trials estimate; a document holds no infinity
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Logarithms of the factors by which the truth may lie beside the figure: ``low`` <= 0 <=
    ``high``.
    """

    low: float = 0.0
    high: float = 0.0

    @property
    def is_empty(self) -> bool:
        return self.low == self.high

    def plus(self, other: "Range") -> "Range":
        return Range(low=self.low + other.low, high=self.high + other.high)

    def inverse(self) -> "Range":
        """The range of 1 ÷ the figure."""
        return Range(low=-self.high, high=-self.low)


NO_RANGE = Range()


def range_to(value: float) -> Range:
    """From no factor to this logarithm of one."""
    return Range(low=min(0.0, value), high=max(0.0, value))


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
        if self.standard_error is None or self.degrees_of_freedom is None:
            return None
        down, up = (
            t_quantile(1 - tail, self.degrees_of_freedom) for tail in (lower_tail, upper_tail)
        )
        return Interval(
            low=self.ratio * exp(self.range.low - down * self.standard_error),
            high=self.ratio * exp(self.range.high + up * self.standard_error),
            confidence=1 - lower_tail - upper_tail,
        )

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

    def _of(self, difference: float, variance: float, degrees_of_freedom: float) -> "Comparison":
        """Another comparison of cells on the same hosts."""
        return replace(
            comparison_of(difference, variance, degrees_of_freedom),
            host_variance=self.host_variance,
        )

    def at(self, difference: float) -> "Comparison":
        """With another difference of the logarithms, which is known as well as this one."""
        if self.standard_error is None or self.degrees_of_freedom is None:
            return Comparison(ratio=exp(difference), host_variance=self.host_variance)
        return self._of(difference, self.standard_error**2, self.degrees_of_freedom)

    def without_range(self) -> "Comparison":
        return self if self.range.is_empty else self.at(log(self.ratio))

    def without_hosts(self) -> "Comparison":
        """As if the cells had run on the same hosts."""
        if not self.host_variance or self.standard_error is None:
            return self
        return replace(
            self,
            standard_error=sqrt(max(0.0, self.standard_error**2 - self.host_variance)),
            host_variance=None,
        )

    def known_to(
        self, least_variance: float, degrees_of_freedom: float | None = KNOWN
    ) -> "Comparison":
        """With at least this variance of the ratio's logarithm, which no spread of trials
        estimates; ``degrees_of_freedom`` of None: as many as the trials have.
        """
        if self.standard_error is None or self.standard_error**2 >= least_variance:
            return self
        degrees = degrees_of_freedom or self.degrees_of_freedom or KNOWN
        return self._of(log(self.ratio), least_variance, degrees)

    def moderated(self, known: float, degrees: float) -> "Comparison":
        """With what is known of the variance beforehand: see ``moderate``."""
        if self.standard_error is None or self.degrees_of_freedom is None:
            return self
        own = self.standard_error**2
        posterior = moderate(own, self.degrees_of_freedom, known, degrees)
        return self._of(log(self.ratio), *posterior)

    def inflated(self, factor: float) -> "Comparison":
        """With a larger variance of the trials; what hosts contribute stays."""
        if self.standard_error is None:
            return self
        of_hosts = self.host_variance or 0.0
        return replace(
            self,
            standard_error=sqrt(of_hosts + factor * max(0.0, self.standard_error**2 - of_hosts)),
        )

    def with_range(self, undecided: Range) -> "Comparison":
        """With what is undecided: ``p`` becomes that of the point of the range nearest to no
        difference.
        """
        if undecided.is_empty or self.p is None:
            return self
        nearest = log(self.ratio) + (undecided.high if self.ratio < 1 else undecided.low)
        if nearest * log(self.ratio) <= 0:
            return replace(self, range=undecided, p=1.0)
        error = self.standard_error or 0.0
        degrees = self.degrees_of_freedom or inf
        return replace(
            self, range=undecided, p=two_sided_p(nearest / error, degrees) if error else 0.0
        )

    def scaled(self, shift: float, variance: float) -> "Comparison":
        """Times a further factor whose logarithm is ``shift``, known with ``variance`` (normal)."""
        if self.standard_error is None or self.degrees_of_freedom is None:
            return Comparison(ratio=self.ratio * exp(shift), host_variance=self.host_variance)
        if not shift and not variance:
            return self
        parts = [(self.standard_error**2, self.degrees_of_freedom), (variance, inf)]
        return self._of(
            log(self.ratio) + shift, self.standard_error**2 + variance, satterthwaite(parts)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogMean:
    """The mean of logarithms.

    ``variance`` is that of the mean; it and ``degrees_of_freedom`` are None if unknown.
    """

    mean: float
    variance: float | None
    degrees_of_freedom: float | None

    def known_to(
        self, least_variance: float, degrees_of_freedom: float | None = KNOWN
    ) -> "LogMean":
        """As of a comparison."""
        if self.variance is None or self.variance >= least_variance:
            return self
        degrees = degrees_of_freedom or self.degrees_of_freedom
        return replace(self, variance=least_variance, degrees_of_freedom=degrees)

    def moderated(self, known: float, degrees: float) -> "LogMean":
        """With what is known of the variance beforehand: see ``moderate``."""
        if self.variance is None or self.degrees_of_freedom is None:
            return self
        posterior = moderate(self.variance, self.degrees_of_freedom, known, degrees)
        return replace(self, variance=posterior[0], degrees_of_freedom=posterior[1])

    def plus(self, shift: float, variance: float) -> "LogMean":
        """The ratio times a further factor: its logarithm is normal, with mean ``shift`` and
        ``variance``.
        """
        if not variance or self.variance is None or self.degrees_of_freedom is None:
            return replace(self, mean=self.mean + shift)
        degrees = satterthwaite([(self.variance, self.degrees_of_freedom), (variance, inf)])
        return LogMean(
            mean=self.mean + shift, variance=self.variance + variance, degrees_of_freedom=degrees
        )


def moderate(own: float, own_degrees: float, known: float, degrees: float) -> tuple[float, float]:
    """A variance and its degrees of freedom, with what is known of it beforehand, like that of so
    many degrees of freedom (Smyth 2004).
    """
    both = own_degrees + degrees
    return (own_degrees * own + degrees * known) / both, both


def variance(values: Sequence[float]) -> float:
    """Sample variance of two values or more; 0.0 if they are equal.

    ``statistics.variance`` is many times slower.
    """
    apart = [value - values[0] for value in values]
    center = fsum(apart) / len(apart)
    return fsum([(deviation - center) ** 2 for deviation in apart]) / (len(apart) - 1)


def log_mean(values: Sequence[float], *, inflation: float = 1.0) -> LogMean:
    """The mean of the logarithms; ``inflation`` multiplies its variance, for correlated trials."""
    logs = [log(value) for value in values]
    if len(logs) < 2:
        return LogMean(mean=fmean(logs), variance=None, degrees_of_freedom=None)
    return LogMean(
        mean=fmean(logs),
        variance=inflation * variance(logs) / len(logs),
        degrees_of_freedom=len(logs) - 1,
    )


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
    if mean.variance is None or mean.degrees_of_freedom is None:
        return Estimate(mean=exp(mean.mean), count=len(values), variation=None, interval=None)
    error = sqrt(mean.variance)
    lower, upper = tails or (_TAIL, _TAIL)
    down, up = (t_quantile(1 - tail, mean.degrees_of_freedom) * error for tail in (lower, upper))
    return Estimate(
        mean=exp(mean.mean),
        count=len(values),
        variation=sqrt(variance(values)) / fmean(values),
        interval=Interval(
            low=exp(mean.mean + undecided.low - down),
            high=exp(mean.mean + undecided.high + up),
            confidence=1 - lower - upper,
        ),
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
    return compare_means(log_mean(first), log_mean(second)).with_interval()


def compare_means(first: LogMean, second: LogMean) -> Comparison:
    """The degrees of freedom are those of Satterthwaite (1946)."""
    difference = first.mean - second.mean
    parts = [
        (mean.variance, mean.degrees_of_freedom)
        for mean in (first, second)
        if mean.variance is not None and mean.degrees_of_freedom is not None
    ]
    if len(parts) < 2:
        return Comparison(ratio=exp(difference))
    return comparison_of(difference, sum(part for part, _ in parts), satterthwaite(parts))


def comparison_of(
    difference: float, variance_of_difference: float, degrees_of_freedom: float
) -> Comparison:
    """A comparison of logarithms.

    Without any spread (a replay's trials), a difference has p 0, and equality p 1.
    """
    error = sqrt(variance_of_difference)
    return Comparison(
        ratio=exp(difference),
        standard_error=error,
        degrees_of_freedom=degrees_of_freedom,
        p=two_sided_p(difference / error, degrees_of_freedom) if error else float(difference == 0),
    )


def satterthwaite(parts: Sequence[tuple[float, float]]) -> float:
    """Degrees of freedom of a sum of variances, each given with its own degrees of freedom."""
    total = sum(part for part, _ in parts)
    denominator = sum(part**2 / degrees for part, degrees in parts)
    return total**2 / denominator if denominator else min(degrees for _, degrees in parts)
