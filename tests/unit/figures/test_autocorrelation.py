import random
from math import floor, pi, sqrt
from typing import Any

import numpy as np
import pytest

from tests.unit.run_samples import known
from traindyno.figures.autocorrelation import (
    SeriesMean,
    Trend,
    estimate_mean,
    estimate_trend,
    long_run_variance,
    robust_long_run_deviation,
)
from traindyno.figures.distributions import two_sided_p


def autoregression(
    weight: float, count: int, *, deviation: float = 0.02, seed: int = 3
) -> list[float]:
    """Values of an autoregression of first order; ``deviation`` is that of its values."""
    source = random.Random(seed)
    value = source.gauss(0, deviation)
    values = []
    for _ in range(count):
        value = weight * value + source.gauss(0, deviation * (1 - weight**2) ** 0.5)
        values.append(value)
    return values


def test_few_values_have_no_interval() -> None:
    assert estimate_mean([1.0] * 19) is None
    assert estimate_trend([[1.0] * 19]) is None
    assert estimate_trend([[1.0] * 10, [2.0] * 9]) is None


@pytest.mark.parametrize("weight", [0.0, 0.8])
def test_the_interval_of_a_mean_covers_it(weight: float) -> None:
    covered = 0
    for seed in range(200):
        mean = known(estimate_mean(autoregression(weight, 300, seed=seed)))
        covered += abs(mean.mean) <= mean.half_width(0.95)
    # 95 % of 200, with a standard error of 1.5 points
    assert 180 <= covered <= 199


def test_wandering_noise_is_no_trend() -> None:
    trends = [estimate_trend([autoregression(0.95, 300, seed=seed)]) for seed in range(100)]
    assert sum(trend.p < 0.01 for trend in trends if trend is not None) <= 5


def test_changes_of_level_do_not_pass_for_autocorrelation() -> None:
    noise = autoregression(0.0, 300)
    stepped = [value + (0.4 if 100 <= index < 180 else 0.0) for index, value in enumerate(noise)]
    # independent noise has its own deviation; what the levels add must stay below twice of it
    assert 0.015 < robust_long_run_deviation(stepped) < 0.04
    assert robust_long_run_deviation(autoregression(0.95, 3_000)) > 0.08


def alternating(count: int) -> list[float]:
    return [
        0.02 * (-1) ** index + noise
        for index, noise in enumerate(autoregression(0.0, count, deviation=0.004))
    ]


SERIES = {
    "noise": autoregression(0.0, 120),
    "few values": autoregression(0.3, 20),
    "neighbours alike": autoregression(0.7, 250),
    "wandering": autoregression(0.99, 400),
    "alternating": alternating(60),
    "a line": [
        0.001 * index + noise
        for index, noise in enumerate(autoregression(0.0, 90, deviation=0.002))
    ],
    "two levels": [
        0.1 * (index >= 30) + noise for index, noise in enumerate(autoregression(0.2, 75))
    ],
}


def centred(values: list[float]) -> Any:
    return np.array(values) - np.mean(values)


@pytest.mark.parametrize("name", SERIES)
@pytest.mark.parametrize("fitted", [1, 2])
def test_the_long_run_variance_is_newey_and_wests_of_the_whitened_values(
    name: str, fitted: int
) -> None:
    values = centred(SERIES[name])
    count = len(values)
    correlation = values[1:] @ values[:-1] / (values @ values)
    bias = (fitted + (fitted + 2) * correlation) / count
    weight = np.clip(correlation + bias, -0.5, 0.97)
    whitened = values[1:] - weight * values[:-1]
    # Bartlett's weights fall from 1 to 0 at the lag after the last: a matrix with them on its
    # diagonals
    lags = int(4 * ((count - 1) / 100) ** (2 / 9))
    distance = np.abs(np.subtract.outer(np.arange(count - 1), np.arange(count - 1)))
    bartlett = np.maximum(0, 1 - distance / (lags + 1))
    expected = whitened @ bartlett @ whitened / (count - 1) / (1 - weight) ** 2
    assert long_run_variance(list(values), fitted=fitted) == pytest.approx(expected)


@pytest.mark.parametrize("name", SERIES)
def test_mean_has_the_long_run_variance_and_its_effective_count(name: str) -> None:
    values = SERIES[name]
    mean = estimate_mean(values)
    long_run = long_run_variance(list(centred(values)), fitted=1)
    assert mean is not None
    assert mean.mean == pytest.approx(np.mean(values))
    assert mean.variance == pytest.approx(long_run / len(values))
    assert mean.effective_count == pytest.approx(
        min(1.0, float(np.var(values)) / long_run) * len(values)
    )


def test_the_interval_of_a_mean_by_hand() -> None:
    # t(0.975, 10) = 2.228139 times the error 2; with hardly more than one independent value,
    # t(0.975, 1) = 12.7062
    assert SeriesMean(mean=0.0, variance=4.0, effective_count=11).half_width(0.95) == pytest.approx(
        4.456278
    )
    few = SeriesMean(mean=0.0, variance=4.0, effective_count=1.2)
    assert few.degrees_of_freedom == 1
    assert few.half_width(0.95) == pytest.approx(25.412410)


def test_values_without_noise_count_all_and_have_no_error() -> None:
    mean = known(estimate_mean([1.0] * 20))
    assert (mean.mean, mean.variance, mean.effective_count) == (1.0, 0.0, 20)


def small_sample(count: int, *, fitted: int) -> float:
    """The autocorrelation is fitted, too; the polynomial is that of Kiefer and Vogelsang (2005), 5
    % two-sided.
    """
    share = (floor(4 * (count / 100) ** (2 / 9)) + 1) / count
    wider = np.polyval([-0.5324, 0.4160, 2.9694, 1.96], share) / 1.96
    return float(wider * sqrt(count / (count - fitted - 1)))


@pytest.mark.parametrize("name", SERIES)
def test_a_trend_is_the_least_squares_line_with_the_error_of_its_residuals(name: str) -> None:
    values = SERIES[name]
    count = len(values)
    places = np.arange(count)
    slope, level = np.polyfit(places, values, 1)
    residuals = list(np.array(values) - slope * places - level)
    long_run = long_run_variance(residuals, fitted=2)
    error = small_sample(count, fitted=2) * sqrt(long_run / np.sum((places - places.mean()) ** 2))
    effective = count * min(1.0, float(np.var(residuals)) / long_run)
    trend = known(estimate_trend([values]))
    assert trend.slope == pytest.approx(slope)
    assert trend.standard_error == pytest.approx(error)
    assert trend.p == pytest.approx(two_sided_p(slope / error, max(1, effective - 2)))


def test_a_line_without_noise_is_a_trend_for_certain_and_a_constant_is_none() -> None:
    rising = estimate_trend([[float(index) for index in range(21)]])
    flat = estimate_trend([[1.0] * 20])
    assert rising == Trend(slope=1.0, standard_error=0.0, p=0.0)
    assert flat == Trend(slope=0.0, standard_error=0.0, p=1.0)


def test_parts_with_levels_of_their_own_have_one_slope() -> None:
    parts = [
        [0.5 * place for place in range(12)],
        [30.0 + 0.5 * place for place in range(9)],
        [7.0],
    ]
    assert estimate_trend(parts) == Trend(slope=0.5, standard_error=0.0, p=0.0)
    noise = autoregression(0.0, 40)
    places = np.arange(40)
    second = (places >= 25).astype(float)
    columns = np.array([1 - second, second, places]).T
    fitted, *_ = np.linalg.lstsq(columns, np.array(noise), rcond=None)
    trend = known(estimate_trend([noise[:25], noise[25:]]))
    assert trend.slope == pytest.approx(fitted[2])
    residuals = list(np.array(noise) - columns @ fitted)
    squares = sum(np.sum((part - part.mean()) ** 2) for part in (places[:25], places[25:]))
    error = small_sample(40, fitted=3) * sqrt(long_run_variance(residuals, fitted=3) / squares)
    assert trend.standard_error == pytest.approx(error)


@pytest.mark.parametrize("correlation", [0.0, 0.5])
@pytest.mark.parametrize("count", [27, 36, 90])
def test_noise_in_a_short_series_is_no_trend(count: int, correlation: float) -> None:
    trends = [
        estimate_trend([autoregression(correlation, count, seed=seed)]) for seed in range(400)
    ]
    false = sum(trend is not None and trend.p <= 0.05 for trend in trends) / 400
    # 5 %, and two standard errors of so many series; correlated noise adds some to the shortest
    assert false <= 0.05 + 2 * sqrt(0.05 * 0.95 / 400) + 0.03 * (correlation > 0)


@pytest.mark.parametrize("name", SERIES)
def test_the_robust_deviation_whitens_by_the_lower_of_two_correlations(name: str) -> None:
    values = np.array(SERIES[name])
    count = len(values)
    differences = [np.median(np.abs(values[lag:] - values[:-lag])) for lag in (1, 2)]
    robust = (differences[1] / differences[0]) ** 2 - 1 + 2 * (2 / sqrt(count))
    deviations = values - values.mean()
    plain = deviations[1:] @ deviations[:-1] / (deviations @ deviations)
    plain += (1 + 3 * plain) / count
    weight = np.clip(min(robust, plain), 0, 0.97)
    innovation = sqrt(pi / 2) * np.mean(np.abs(np.diff(values))) * sqrt((1 + weight) / 2)
    assert robust_long_run_deviation(list(values)) == pytest.approx(innovation / (1 - weight))


def test_the_robust_deviation_is_never_below_the_noise_of_a_timer() -> None:
    # 0.01 %; three values tell no more. A level that never changes has no correlation.
    assert robust_long_run_deviation([5.0, 1.0, 9.0]) == 1e-4
    assert robust_long_run_deviation([1.0] * 8) == pytest.approx(1e-4)
    # Four values do: the correlation is negative, so that it counts as none; differences of 2, 1
    # and 3.
    assert robust_long_run_deviation([0.0, 2.0, 1.0, 4.0]) == pytest.approx(
        sqrt(pi / 2) * 2 * sqrt(1 / 2)
    )
