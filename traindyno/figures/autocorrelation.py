"""Errors of the mean and of the trend of an autocorrelated series."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log, pi, sqrt
from statistics import fmean, median

from traindyno.figures.distributions import t_half_width, two_sided_p

LEAST_VALUES = 20
LEAST_DEVIATION = 1e-4  # on the logarithmic scale: 0.01 %, below the noise of any timer
_DEVIATIONS_PER_MEAN_DISTANCE = sqrt(pi / 2)  # of a normal distribution
_MOST_AUTOCORRELATION = 0.97
_LEAST_AUTOCORRELATION = -0.5
MOST_CORRELATION = 0.95
_STEP = 0.05
_GRID = [index * _STEP for index in range(round(MOST_CORRELATION / _STEP) + 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesMean:
    """The mean of a series of correlated values, with the mean's variance.

    As many independent values as ``effective_count`` would give the same variance.
    """

    mean: float
    variance: float
    effective_count: float

    @property
    def degrees_of_freedom(self) -> float:
        return max(1.0, self.effective_count - 1)

    def half_width(self, confidence: float) -> float:
        """Half width of the interval of the mean by Student's t."""
        return t_half_width(sqrt(self.variance), self.degrees_of_freedom, confidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """A line through a series: ``slope`` is per value, ``p`` two-sided, of no trend."""

    slope: float
    standard_error: float
    p: float


def estimate_mean(values: Sequence[float]) -> SeriesMean | None:
    """The mean and its variance, from the long-run variance; None below 20 values."""
    count = len(values)
    if count < LEAST_VALUES:
        return None
    center = fmean(values)
    deviations = [value - center for value in values]
    long_run = long_run_variance(deviations, fitted=1)
    effective = _effective_count(deviations, long_run)
    return SeriesMean(mean=center, variance=long_run / count, effective_count=effective)


def estimate_trend(parts: Sequence[Sequence[float]]) -> Trend | None:
    """The slope that all parts have in common, each with its own level; None below 20 values.

    Least squares, with the standard error of Newey and West (1987), prewhitened, which holds under
    autocorrelation. Its own error matters in short series: it is wider by the degrees of freedom,
    and by the lags. A change of level between two parts has no slope.
    """
    count = sum(len(part) for part in parts)
    squares = sum(len(part) * (len(part) ** 2 - 1) / 12 for part in parts)
    if count < LEAST_VALUES or not squares:
        return None
    # each value with its place, both from their middle
    centered = [
        [(index - (len(part) - 1) / 2, value - center) for index, value in enumerate(part)]
        for part in parts
        for center in [fmean(part) if part else 0.0]
    ]
    slope = sum(place * value for part in centered for place, value in part) / squares
    residuals = [value - slope * place for part in centered for place, value in part]
    fitted = 1 + len(parts)
    long_run = long_run_variance(residuals, fitted=fitted)
    # by the critical values of Kiefer and Vogelsang (2005) for Bartlett weights: those at 5 %,
    # two-sided
    share = (_lags(count) + 1) / count
    wider = (1.96 + 2.9694 * share + 0.4160 * share**2 - 0.5324 * share**3) / 1.96
    error = sqrt(long_run / squares * count / max(1, count - fitted - 1)) * wider
    effective = _effective_count(residuals, long_run)
    p = two_sided_p(slope / error, max(1.0, effective - fitted)) if error > 0 else float(slope == 0)
    return Trend(slope=slope, standard_error=error, p=p)


def _effective_count(residuals: Sequence[float], long_run: float) -> float:
    count = len(residuals)
    return count * min(1.0, _products(residuals, 0) / count / long_run) if long_run > 0 else count


def _products(values: Sequence[float], lag: int = 1) -> float:
    """The sum of the products of values that are ``lag`` apart."""
    return sum(before * after for before, after in zip(values, values[lag:], strict=False))


def long_run_variance(residuals: Sequence[float], *, fitted: int) -> float:
    """The variance of the mean times the number of values.

    Newey and West (1987) with Bartlett weights, after prewhitening by a first-order autoregression
    (Andrews and Monahan 1992). The bias of the autocorrelation after a fit of ``fitted`` parameters
    (1: the mean, 2: a line) is corrected as Kendall (1954) and Marriott and Pope (1954) give it.
    """
    count = len(residuals)
    power = _products(residuals, 0)
    if power <= 0:
        return 0.0
    correlation = _products(residuals) / power
    corrected = correlation + (fitted + (fitted + 2) * correlation) / count
    weight = min(max(corrected, _LEAST_AUTOCORRELATION), _MOST_AUTOCORRELATION)
    whitened = [after - weight * before for before, after in pairwise(residuals)]
    return _newey_west(whitened) / (1 - weight) ** 2


def _lags(count: int) -> int:
    return int(4 * (count / 100) ** (2 / 9))


def _newey_west(values: Sequence[float]) -> float:
    count = len(values)
    lags = _lags(count)
    total = _products(values, 0)
    for lag in range(1, min(lags, count - 1) + 1):
        total += 2 * (1 - lag / (lags + 1)) * _products(values, lag)
    return max(0.0, total) / count


def robust_long_run_deviation(values: Sequence[float]) -> float:
    """The square root of the long-run variance of an autoregression with occasional changes of
    level.

    The autocorrelation is taken from medians of differences, which are robust to a few changes of
    level (Chakar, Lebarbier, Lévy-Leduc and Robin 2017), plus two of its standard errors; if the
    ordinary estimate is lower, it is used. The deviation is that of the differences, by their mean
    absolute value: a median would leave out the tails of skewed noise, and squares would count the
    changes of level as noise.
    """
    count = len(values)
    if count < 4:
        return LEAST_DEVIATION
    once = [abs(after - before) for before, after in pairwise(values)]
    twice = [abs(after - before) for before, after in zip(values, values[2:], strict=False)]
    robust = (median(twice) / median(once)) ** 2 - 1 + 4 / sqrt(count) if median(once) > 0 else 0.0
    center = fmean(values)
    deviations = [value - center for value in values]
    power = _products(deviations, 0)
    plain = _products(deviations) / power if power > 0 else 0.0
    plain += (1 + 3 * plain) / count
    weight = min(max(min(robust, plain), 0.0), _MOST_AUTOCORRELATION)
    # the variance of a difference is that of the autoregression's innovation x 2 / (1 + weight)
    innovation = _DEVIATIONS_PER_MEAN_DISTANCE * fmean(once) * sqrt((1 + weight) / 2)
    return max(innovation, LEAST_DEVIATION) / (1 - weight)


def serial_correlation(groups: Sequence[Sequence[float]]) -> float:
    """Correlation of a trial with the one before it in its cell.

    ``groups`` are the cells' logarithms in the order in which they were measured, less what their
    blocks share. The statistic is von Neumann's ratio (1941): squared successive differences ÷
    twice the squared deviations, 1 on average for independent trials and less for correlated ones.
    Each cell's ratio counts alike, so spreads may differ. The correlation is the most likely one of
    a first-order autoregression, shrunk by the share of the ratio's deviation that chance explains
    (positive-part James-Stein: 1 - 1 ÷ z²).
    """
    ratios = [
        (ratio, len(group))
        for group in groups
        if len(group) > 2 and (ratio := _ratio(group)) is not None
    ]
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
    """The upper end of the correlations that the trials make likely: within one standard error of
    the most likely.
    """
    likelihoods = _log_likelihoods(groups)
    return max(
        correlation
        for correlation, likelihood in zip(_GRID, likelihoods, strict=True)
        if likelihood >= max(likelihoods) - 0.5
    )


def _log_likelihoods(groups: Sequence[Sequence[float]]) -> list[float]:
    """Restricted log likelihood of each correlation of the grid; mean and spread of each group are
    free.
    """
    usable = [group for group in groups if len(group) > 2 and _ratio(group) is not None]
    if not usable:
        return [-float(index) for index in range(len(_GRID))]
    return [sum(_log_likelihood(group, correlation) for group in usable) for correlation in _GRID]


def _log_likelihood(values: Sequence[float], correlation: float) -> float:
    """The inverse of the covariance of an autoregression has three diagonals."""
    count = len(values)
    left = 1 - correlation
    inner = values[1:-1]
    weight = left * (count - (count - 2) * correlation)
    total = left * (values[0] + values[-1] + left * sum(inner))
    squares = values[0] ** 2 + values[-1] ** 2 + (1 + correlation**2) * _products(inner, 0)
    squares -= 2 * correlation * _products(values) + total**2 / weight
    innovation = 1 - correlation**2
    spread = max(squares, 1e-300) / innovation
    return -(log(weight / innovation) + (count - 1) * (log(innovation) + log(spread))) / 2


def variance_inflation(correlation: float, count: int) -> float:
    """The variance of the mean of ``count`` trials with this correlation, as a multiple of the
    usual s² / n.
    """
    spread = 1 + 2 * sum((1 - lag / count) * correlation**lag for lag in range(1, count))
    return spread * (count - 1) / (count - spread) if count > 1 else 1.0


def _ratio(values: Sequence[float]) -> float | None:
    center = fmean(values)
    power = sum((value - center) ** 2 for value in values)
    return (
        sum((after - before) ** 2 for before, after in pairwise(values)) / (2 * power)
        if power > 0
        else None
    )
