"""Mean seconds of a step, or of a part of one, and how well they are known."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, sqrt
from statistics import NormalDist, fmean, stdev

from traindyno.core.statistics.estimates import CONFIDENCE

NORMAL_QUANTILE = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartSeconds:
    """Mean seconds of a step, with their standard error.

    A difference of two means may be slightly negative.
    """

    mean: float
    error: float

    @property
    def half_width(self) -> float:
        return NORMAL_QUANTILE * self.error

    @property
    def is_found(self) -> bool:
        """Whether it is more than nothing, at 95 %."""
        return self.mean > self.half_width

    def minus(self, other: "PartSeconds") -> "PartSeconds":
        return PartSeconds(mean=self.mean - other.mean, error=hypot(self.error, other.error))


def mean_seconds(parts: Sequence[PartSeconds]) -> PartSeconds:
    error = hypot(*(each.error for each in parts)) / len(parts)
    return PartSeconds(mean=fmean(each.mean for each in parts), error=error)


def standard_error(values: Sequence[float]) -> float:
    return stdev(values) / sqrt(len(values)) if len(values) > 1 else 0.0
