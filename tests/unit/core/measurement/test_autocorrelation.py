import random

import pytest

from traindyno.core.measurement.autocorrelation import (
    estimate_mean,
    estimate_trend,
    long_run_variance,
    mean_interval,
    robust_long_run_deviation,
)


def autoregression(weight: float, count: int, *, deviation: float = 0.02, seed: int = 3) -> list[float]:
    """Of first order; ``deviation`` is that of its values."""
    source = random.Random(seed)
    value, values = source.gauss(0, deviation), []
    for _ in range(count):
        value = weight * value + source.gauss(0, deviation * (1 - weight**2) ** 0.5)
        values.append(value)
    return values


@pytest.mark.parametrize(("weight", "expected"), [(0.0, 1.0), (0.8, 9.0), (-0.3, 0.538)])
def test_the_long_run_variance_of_an_autoregression(weight: float, expected: float) -> None:
    # variance x (1 + weight) / (1 - weight), of 0.02 squared
    found = long_run_variance(autoregression(weight, 20_000), fitted=1)
    assert found == pytest.approx(0.0004 * expected, rel=0.15)


def test_a_series_without_noise_has_no_error() -> None:
    found = estimate_mean([1.0] * 20)
    assert found is not None
    assert (found.mean, found.variance) == (1.0, 0.0)


def test_few_values_have_no_interval() -> None:
    assert estimate_mean([1.0] * 19) is None
    assert estimate_trend([1.0] * 19) is None
    assert mean_interval([1.0] * 19) is None


def test_values_that_resemble_their_neighbours_count_for_fewer() -> None:
    found = estimate_mean(autoregression(0.9, 5_000))
    assert found is not None
    # 5,000 x (1 - 0.9) / (1 + 0.9) = 263
    assert found.effective_count == pytest.approx(263, rel=0.3)
    assert found.degrees_of_freedom == pytest.approx(found.effective_count - 1)


def test_independent_values_have_the_textbook_interval() -> None:
    found = mean_interval(autoregression(0.0, 2_000, deviation=0.05))
    assert found is not None
    # 1.96 x 0.05 / sqrt(2,000)
    assert found[1] == pytest.approx(0.0022, rel=0.15)


@pytest.mark.parametrize("weight", [0.0, 0.8])
def test_the_interval_of_a_mean_covers_it(weight: float) -> None:
    covered = 0
    for seed in range(200):
        found = mean_interval(autoregression(weight, 300, seed=seed))
        assert found is not None
        covered += abs(found[0]) <= found[1]
    # 95 % of 200, with a standard error of 1.5 points
    assert 180 <= covered <= 199


def test_a_trend_is_found_with_its_sign_and_size() -> None:
    noise = autoregression(0.5, 300, deviation=0.005)
    for change in (0.03, -0.03):
        found = estimate_trend([value + change * index / 299 for index, value in enumerate(noise)])
        assert found is not None
        assert found.change == pytest.approx(change, abs=0.006)
        assert found.p < 0.01


def test_noise_that_wanders_is_no_trend() -> None:
    trends = [estimate_trend(autoregression(0.95, 300, seed=seed)) for seed in range(100)]
    assert sum(trend.p < 0.01 for trend in trends if trend is not None) <= 5


def test_changes_of_level_do_not_pass_for_autocorrelation() -> None:
    noise = autoregression(0.0, 300)
    stepped = [value + (0.4 if 100 <= index < 180 else 0.0) for index, value in enumerate(noise)]
    # independent noise has its own deviation; what the levels add must stay below twice of it
    assert 0.015 < robust_long_run_deviation(stepped) < 0.04
    assert robust_long_run_deviation(autoregression(0.95, 3_000)) > 0.08
