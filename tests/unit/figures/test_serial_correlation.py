"""Trials that resemble the one before, by an independent sum over their correlations."""

import random

import pytest

from traindyno.figures.autocorrelation import (
    largest_correlation,
    serial_correlation,
    variance_inflation,
)


def rising(count: int) -> list[float]:
    return [0.01 * step for step in range(count)]


@pytest.mark.parametrize(("correlation", "count"), [(0.5, 2), (0.3, 5), (0.9, 8), (0.0, 4)])
def test_the_inflation_is_the_variance_of_the_mean_by_the_expected_sample_variance(
    correlation: float, count: int
) -> None:
    # unit variance: the mean has the mean of all covariances; s^2 is expected to be
    # (1 - that) n / (n - 1) on average
    covariances = [
        correlation ** abs(row - column) for row in range(count) for column in range(count)
    ]
    of_mean = sum(covariances) / count**2
    sample_variance = (1 - of_mean) * count / (count - 1)
    assert variance_inflation(correlation, count) == pytest.approx(
        of_mean / (sample_variance / count)
    )


def test_one_trial_is_not_inflated() -> None:
    assert variance_inflation(0.9, 1) == 1.0


def series(source: random.Random, correlation: float, count: int) -> list[float]:
    values = [source.gauss(0, 1)]
    while len(values) < count:
        values.append(correlation * values[-1] + source.gauss(0, (1 - correlation**2) ** 0.5))
    scale = source.uniform(0.1, 10)
    return [scale * value + 5 for value in values]


@pytest.mark.parametrize("correlation", [0.4, 0.7, 0.85])
@pytest.mark.parametrize("count", [5, 12])
def test_the_correlation_found_over_many_cells_is_the_true_one(
    correlation: float, count: int
) -> None:
    source = random.Random(11)
    estimated = serial_correlation([series(source, correlation, count) for _ in range(2000)])
    assert estimated == pytest.approx(correlation, abs=0.055)


def test_the_upper_end_is_above_the_true_correlation_in_most_suites() -> None:
    source = random.Random(12)
    suites = [[series(source, 0.7, 5) for _ in range(8)] for _ in range(100)]
    assert 75 <= sum(largest_correlation(suite) >= 0.7 for suite in suites) <= 95
    assert largest_correlation([]) == 0


def test_the_largest_correlation_is_assumed_of_trials_with_few_turns() -> None:
    assert serial_correlation([rising(40)] * 9) == pytest.approx(0.95, rel=0.01)


def test_cells_of_two_trials_or_without_any_spread_tell_nothing() -> None:
    assert serial_correlation([[1.0, 1.1]] * 9) == 0
    assert serial_correlation([[1.0, 1.0, 1.0]] * 9) == 0
    assert serial_correlation([]) == 0
    informative = serial_correlation([rising(6)] * 3)
    assert serial_correlation([*[rising(6)] * 3, [1.0, 1.1], [1.0, 1.0, 1.0]]) == informative > 0


def test_a_correlation_explained_by_chance_is_none() -> None:
    # steps of 0.6 and 0.4, forth and back: 0.52 / (2 x 0.2267), above 1; steps in one direction:
    # 0.52 / (2 x 0.5067)
    assert serial_correlation([[0.0, 0.6, 0.2]]) == 0
    # a deficit of 0.487 with a variance of 1 / 8: the share 0.527 of its square is chance
    once = serial_correlation([[0.0, 0.6, 1.0]])
    several = serial_correlation([[0.0, 0.6, 1.0]] * 8)
    assert 0 < once < several
    assert once / several == pytest.approx(
        (1 - 0.125 / 0.487**2) / (1 - 8 / 7 * 8 * 0.125 / (8 * 0.487) ** 2), rel=0.01
    )


def test_each_cells_ratio_counts_alike() -> None:
    # falling and rising alike, whatever their scale; the mean of different lengths decides
    scaled = [[50 * value for value in rising(6)], [-value for value in rising(6)], rising(6)]
    assert serial_correlation(scaled) == pytest.approx(serial_correlation([rising(6)] * 3))
