"""Trials that resemble the one before, by an independent sum over their correlations."""

from math import exp

import pytest

from traindyno.core.statistics.serial_correlation import serial_correlation, variance_inflation


def rising(count: int) -> list[float]:
    return [exp(0.01 * step) for step in range(count)]


@pytest.mark.parametrize(("correlation", "count"), [(0.5, 2), (0.3, 5), (0.9, 8), (0.0, 4)])
def test_the_inflation_is_the_variance_of_the_mean_by_the_expected_sample_variance(
    correlation: float, count: int
) -> None:
    # unit variance: the mean has the mean of all covariances; s^2 is expected to be (1 - that) n / (n - 1)
    covariances = [correlation ** abs(row - column) for row in range(count) for column in range(count)]
    of_mean = sum(covariances) / count**2
    sample_variance = (1 - of_mean) * count / (count - 1)
    assert variance_inflation(correlation, count) == pytest.approx(of_mean / (sample_variance / count))


def test_one_trial_is_not_inflated() -> None:
    assert variance_inflation(0.9, 1) == 1.0


def test_the_correlation_found_is_the_one_that_expects_von_neumanns_ratio() -> None:
    # successive differences 4 + 1 + 4 + 1 + 4, squared deviations from 2: 4 + 0 + 1 + 1 + 0 + 4; 14 / 20
    wavering = [exp(0.01 * step) for step in (0, 2, 1, 3, 2, 4)]
    found = serial_correlation([wavering] * 4)
    covariances = [found ** abs(row - column) for row in range(6) for column in range(6)]
    expected = (1 - found) * 5 / (6 - sum(covariances) / 6)
    assert expected == pytest.approx(0.7, abs=0.005)
    # deficits 0.3 each with deviations sqrt(4 / 35): 1.2 / 0.676 = 1.77 is above 1.645, 0.9 / 0.586 = 1.54 is not
    assert serial_correlation([wavering] * 3) == 0


def test_the_largest_correlation_is_assumed_of_trials_that_hardly_turn() -> None:
    assert serial_correlation([rising(40)] * 2) == pytest.approx(0.95)


def test_cells_of_two_trials_or_without_any_spread_tell_nothing() -> None:
    assert serial_correlation([[1.0, 1.1]] * 9) == 0
    assert serial_correlation([[1.0, 1.0, 1.0]] * 9) == 0
    assert serial_correlation([]) == 0
    informative = serial_correlation([rising(6)] * 3)
    assert serial_correlation([*[rising(6)] * 3, [1.0, 1.1], [1.0, 1.0, 1.0]]) == informative > 0


def test_a_correlation_counts_only_beyond_its_one_sided_error() -> None:
    # three trials in a row of equal steps: ratio (1 + 1) / (2 x 2) = 1 / 2, a deficit of 1 / 2 with a deviation of
    # sqrt(1 / 8) for one cell; k cells: k / 2 by sqrt(k / 8), above 1.645 from k = 2 on (2 >= 1.645; 1.41 is not)
    assert serial_correlation([rising(3)]) == 0
    assert serial_correlation([rising(3)] * 2) > 0
    # steps of 0.75 and 0.25: 0.625 / (2 x 0.5417), a deficit of 0.423; 0.846 by 0.5 is 1.69
    assert serial_correlation([[exp(0.01 * step) for step in (0, 0.75, 1)]] * 2) > 0


def test_each_cells_ratio_counts_alike() -> None:
    # falling and rising alike, whatever their scale; the mean of different lengths decides
    scaled = [[value**50 for value in rising(6)], [1 / value for value in rising(6)], rising(6)]
    assert serial_correlation(scaled) == pytest.approx(serial_correlation([rising(6)] * 3))
