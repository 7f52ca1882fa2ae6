"""Means of logarithms, with their variances and how well those are known."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum, inf, log
from statistics import fmean

# The fewest values of which a spread is known, with two degrees of freedom.
LEAST_COUNT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LogMean:
    """The mean of logarithms, or the difference of two means.

    ``variance`` is that of the mean; it and ``degrees_of_freedom`` are None if unknown.
    ``host_variance`` is its part between hosts of cells that ran on one draw of them: more trials
    there leave it as it is. None where it has no such part.
    """

    mean: float
    variance: float | None = None
    degrees_of_freedom: float | None = None
    host_variance: float | None = None

    def minus(self, other: "LogMean") -> "LogMean":
        """Of independent trials: the degrees of freedom are those of Satterthwaite (1946)."""
        difference = LogMean(mean=self.mean - other.mean)
        parts = [
            (mean.variance, mean.degrees_of_freedom)
            for mean in (self, other)
            if mean.variance is not None and mean.degrees_of_freedom is not None
        ]
        if len(parts) < 2:
            return difference
        variance, degrees = total_variance(parts)
        return replace(difference, variance=variance, degrees_of_freedom=degrees)

    def told_by(self, counts: Sequence[int]) -> "LogMean":
        """A difference of so many independent values each: its degrees of freedom are at most those
        of equal spreads. Two values that agree by chance, beside many that scatter, would otherwise
        be told apart from equal ones in 12 of 100 pairs.
        """
        if self.degrees_of_freedom is None:
            return self
        _, most = total_variance([(1 / count, count - 1) for count in counts])
        return replace(self, degrees_of_freedom=min(self.degrees_of_freedom, most))

    def inflated(self, factor: float) -> "LogMean":
        """With a larger variance of the trials; what hosts contribute stays."""
        if self.variance is None:
            return self
        of_hosts = self.host_variance or 0.0
        of_trials = max(0.0, self.variance - of_hosts)
        return replace(self, variance=of_hosts + factor * of_trials)

    def known_to(self, least_variance: float, degrees_of_freedom: float | None) -> "LogMean":
        """With at least this variance, which no spread of trials estimates; ``degrees_of_freedom``
        of None: as many as the trials have.
        """
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
        """Times a further factor: its logarithm is normal, with mean ``shift`` and
        ``variance``.
        """
        if not variance or self.variance is None or self.degrees_of_freedom is None:
            return replace(self, mean=self.mean + shift)
        total, degrees = total_variance([(self.variance, self.degrees_of_freedom), (variance, inf)])
        return replace(self, mean=self.mean + shift, variance=total, degrees_of_freedom=degrees)


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
        return LogMean(mean=fmean(logs))
    return LogMean(
        mean=fmean(logs),
        variance=inflation * variance(logs) / len(logs),
        degrees_of_freedom=len(logs) - 1,
    )


def total_variance(parts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The sum of variances and its degrees of freedom, each given with its own (Satterthwaite
    1946).
    """
    total = sum(part for part, _ in parts)
    denominator = sum(part**2 / degrees for part, degrees in parts)
    return total, total**2 / denominator if denominator else min(degrees for _, degrees in parts)
