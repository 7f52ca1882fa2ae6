"""Trials that resemble the one before, by an independent sum over their correlations."""

import pytest

from traindyno.core.statistics.serial_correlation import serial_correlation, variance_inflation


def rising(count: int) -> list[float]:
    return [0.01 * step for step in range(count)]


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
    wavering = [0.01 * step for step in (0, 2, 1, 3, 2, 4)]
    found = serial_correlation([wavering] * 4)
    # deficits of 0.3 each, which chance gives with a variance of 4 / 35 each, of three independent cells of the four
    found /= 1 - 4 / 3 * 4 * (4 / 35) / 1.2**2
    covariances = [found ** abs(row - column) for row in range(6) for column in range(6)]
    expected = (1 - found) * 5 / (6 - sum(covariances) / 6)
    assert expected == pytest.approx(0.7, abs=0.005)


def test_the_largest_correlation_is_assumed_of_trials_that_hardly_turn() -> None:
    assert serial_correlation([rising(40)] * 9) == pytest.approx(0.95, rel=0.01)


def test_cells_of_two_trials_or_without_any_spread_tell_nothing() -> None:
    assert serial_correlation([[1.0, 1.1]] * 9) == 0
    assert serial_correlation([[1.0, 1.0, 1.0]] * 9) == 0
    assert serial_correlation([]) == 0
    informative = serial_correlation([rising(6)] * 3)
    assert serial_correlation([*[rising(6)] * 3, [1.0, 1.1], [1.0, 1.0, 1.0]]) == informative > 0


def test_what_chance_explains_is_no_correlation() -> None:
    # steps of 0.6 and 0.4, forth and back: 0.52 / (2 x 0.2267), above 1; steps in one direction: 0.52 / (2 x 0.5067)
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
