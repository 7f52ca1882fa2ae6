"""Correlation of trials with the previous one of their cell: over all cells, and included in the intervals."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import log
from statistics import fmean

MOST_CORRELATION = 0.95
_STEP = 0.05
_GRID = [index * _STEP for index in range(round(MOST_CORRELATION / _STEP) + 1)]


def serial_correlation(groups: Sequence[Sequence[float]]) -> float:
    """Correlation of a trial with the one before it in its cell.

    ``groups`` are the cells' logarithms in the order in which they were measured, less what their blocks share. The
    statistic is von Neumann's ratio (1941): squared successive differences ÷ twice the squared deviations, 1 on average
    for independent trials and less for correlated ones. Each cell's ratio counts alike, so spreads may differ. The
    correlation is the most likely one of a first-order autoregression, shrunk by the share of the ratio's deviation
    that chance explains (positive-part James-Stein: 1 - 1 ÷ z²).
    """
    ratios = [(ratio, len(group)) for group in groups if len(group) > 2 and (ratio := _ratio(group)) is not None]
    if not ratios:
        return 0.0
    deficit = sum(1 - ratio for ratio, _ in ratios)
    # What blocks share was removed, so that one of the ratios follows from the others.
    dependent = len(ratios) / max(1, len(ratios) - 1)
    chance = dependent * sum((count - 2) / (count * count - 1) for _, count in ratios)
    shrinkage = 1 - chance / deficit**2 if deficit > 0 else 0.0
    if shrinkage <= 0:
        return 0.0
    likelihoods = _log_likelihoods(groups)
    return shrinkage * _GRID[likelihoods.index(max(likelihoods))]


def largest_correlation(groups: Sequence[Sequence[float]]) -> float:
    """The upper end of the correlations that the trials make likely: within one standard error of the most likely."""
    likelihoods = _log_likelihoods(groups)
    return max(each for each, found in zip(_GRID, likelihoods, strict=True) if found >= max(likelihoods) - 0.5)


def _log_likelihoods(groups: Sequence[Sequence[float]]) -> list[float]:
    """Restricted log likelihood of each correlation of the grid; mean and spread of each group are free."""
    usable = [group for group in groups if len(group) > 2 and _ratio(group) is not None]
    if not usable:
        return [-float(index) for index in range(len(_GRID))]
    return [sum(_log_likelihood(group, each) for group in usable) for each in _GRID]


def _log_likelihood(values: Sequence[float], correlation: float) -> float:
    """The inverse of the covariance of an autoregression has three diagonals."""
    count, left = len(values), 1 - correlation
    inner = values[1:-1]
    weight = left * (count - (count - 2) * correlation)
    total = left * (values[0] + values[-1] + left * sum(inner))
    squares = values[0] ** 2 + values[-1] ** 2 + (1 + correlation**2) * sum(value * value for value in inner)
    squares -= 2 * correlation * sum(before * after for before, after in pairwise(values)) + total**2 / weight
    innovation = 1 - correlation**2
    spread = max(squares, 1e-300) / innovation
    return -(log(weight / innovation) + (count - 1) * (log(innovation) + log(spread))) / 2


@lru_cache(maxsize=4096)
def variance_inflation(correlation: float, count: int) -> float:
    """The variance of the mean of ``count`` trials with this correlation, as a multiple of the usual s² / n."""
    spread = _mean_variance(correlation, count)
    return spread * (count - 1) / (count - spread) if count > 1 else 1.0


def _ratio(values: Sequence[float]) -> float | None:
    center = fmean(values)
    power = sum((value - center) ** 2 for value in values)
    return sum((after - before) ** 2 for before, after in pairwise(values)) / (2 * power) if power > 0 else None


def _mean_variance(correlation: float, count: int) -> float:
    """``count`` × variance of the mean ÷ variance of one trial."""
    return 1 + 2 * sum((1 - lag / count) * correlation**lag for lag in range(1, count))
