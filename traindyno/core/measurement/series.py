"""How well the mean of one run's steps is known, though neighbouring steps resemble each other."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, variance

from traindyno.core.measurement.student_t import standard_error, t_half_width

LEAST_BATCHES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesMean:
    mean: float
    half_width: float


def mean_interval(values: Sequence[float], *, confidence: float = 0.95) -> SeriesMean | None:
    """The mean's interval by batch means; None below 20 values.

    Batches grow until their means no longer show autocorrelation at lag 1, or only ten are left: independent batches
    make Student's t apply where single steps would claim too much.
    """
    if len(values) < 2 * LEAST_BATCHES:
        return None
    size = 1
    means = list(values)
    while len(values) // (2 * size) >= LEAST_BATCHES and _autocorrelation(means) > 2 / len(means) ** 0.5:
        size *= 2
        used = len(values) // size * size
        means = [fmean(values[begin : begin + size]) for begin in range(0, used, size)]
    error = standard_error(variance(means), len(means))
    return SeriesMean(mean=fmean(values), half_width=t_half_width(error, len(means) - 1, confidence))


def mean_half_width(step_seconds: Sequence[float], *, confidence: float = 0.95) -> float | None:
    """Half width ÷ mean of positive values: what ``stop_when.relative_half_width`` is about. None below 20 values."""
    found = mean_interval(step_seconds, confidence=confidence)
    return None if found is None else found.half_width / found.mean


def _autocorrelation(values: Sequence[float]) -> float:
    center = fmean(values)
    deviations = [value - center for value in values]
    power = sum(deviation * deviation for deviation in deviations)
    products = (before * after for before, after in pairwise(deviations))
    return sum(products) / power if power else 0.0
