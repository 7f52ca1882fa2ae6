"""What may be claimed of the best cell, by hand-made comparisons."""

from math import exp

import pytest

from traindyno.core.measurement.selection import (
    Looks,
    Relation,
    correct_for_selection,
    count_contenders,
    relate,
    trials_to_decide,
)
from traindyno.core.measurement.serial_correlation import serial_correlation, variance_inflation
from traindyno.core.measurement.statistics import Comparison, comparison_of


def behind(percent: float, error: float, degrees: float = 8) -> Comparison:
    """The best is ahead by so many percent (of logarithms), known with this standard error in percent."""
    return comparison_of(-percent / 100, (error / 100) ** 2, degrees)


def relation(percent: float, error: float, tolerance: float = 0.02) -> Relation:
    (found,) = relate([behind(percent, error)], tolerance=tolerance, significance=0.05)
    return found


def test_each_relation_follows_from_the_interval_and_the_zone() -> None:
    # t(0.975, 8) = 2.306, t(0.95, 8) = 1.860, the zone reaches to log(1.02) = 1.98 %
    assert relation(2.4, 1.0) is Relation.BEATEN
    assert relation(2.2, 1.0) is Relation.NOT_BETTER
    assert relation(0.0, 1.0) is Relation.EQUIVALENT
    assert relation(0.0, 1.1) is Relation.OPEN
    assert relation(0.0, 1.1, tolerance=0.05) is Relation.EQUIVALENT
    assert relate([Comparison(ratio=0.5)], tolerance=0.02, significance=0.05) == (Relation.UNKNOWN,)


def test_contenders_share_the_significance_of_the_tolerance_and_not_that_of_being_beaten() -> None:
    close = behind(0.2, 1.0)
    assert relate([close], tolerance=0.02, significance=0.05) == (Relation.NOT_BETTER,)
    assert relate([close] * 7, tolerance=0.02, significance=0.05) == (Relation.OPEN,) * 7
    # cells far behind are no contenders
    far = [behind(30, 1.0)] * 30
    assert count_contenders([close, *far]) == 1
    assert relate([close, *far], tolerance=0.02, significance=0.05)[0] is Relation.NOT_BETTER
    assert relate([behind(2.4, 1.0)] * 30, tolerance=0.0, significance=0.05)[0] is Relation.BEATEN


def test_a_clear_winner_keeps_its_figures_and_one_of_equals_does_not() -> None:
    clear = correct_for_selection([behind(10, 1.0), behind(12, 1.0)])
    assert (clear.shift, clear.upper_tail) == (0.0, 0.025)
    # two cells 1 % apart with an error of 2 %: the difference is noise, both are taken for the mean of the two
    equal = correct_for_selection([behind(1.0, 2.0)])
    assert equal.shift == pytest.approx(0.005)
    assert equal.upper_tail == 0.0125
    assert equal.of_rate().shift == pytest.approx(-0.005)
    assert equal.of_rate().lower_tail == 0.0125
    # the first of two looks has a quarter of the significance
    first_look = correct_for_selection([behind(1.0, 2.0)], Looks(count=2, index=1).significance)
    assert (first_look.upper_tail, first_look.lower_tail) == pytest.approx((0.003125, 0.00625))


def test_the_trials_that_would_tell_exceed_those_that_were_run() -> None:
    # error 1 % with 5 trials: s^2 = 5e-4; to show 0.1 + 1.98 %: 5e-4 (t(0.95, 8) + t(0.8, 8))^2 / 0.0208^2 = 8.7
    assert trials_to_decide([behind(0.1, 1.0)], trials=5, tolerance=0.02) == 9
    assert trials_to_decide([behind(5.0, 0.1)], trials=5, tolerance=0.02) == 6
    assert trials_to_decide([behind(0.0, 20.0)], trials=5, tolerance=0.02) is None
    assert trials_to_decide([Comparison(ratio=1.0)], trials=1, tolerance=0.02) is None


def test_the_looks_together_spend_the_significance() -> None:
    shares = [Looks(count=4, index=index).significance for index in (1, 2, 3, 4)]
    assert shares == pytest.approx([0.05 * part / 16 for part in (1, 3, 5, 7)])
    assert sum(shares) == pytest.approx(0.05)
    assert Looks().significance == 0.05


def test_correlated_trials_widen_the_interval() -> None:
    wave = [exp(0.01 * step) for step in (0, 1, 2, 3, 4, 5, 6, 7)]
    found = serial_correlation([wave] * 4)
    assert found > 0.5
    assert variance_inflation(found, 8) > 3
    alternating = [exp(0.01 * (step % 2)) for step in range(8)]
    assert serial_correlation([alternating] * 4) == 0
    # two trials with correlation r: variance (1 + r) / 2 of the mean, expected s^2 (1 - r): (1 + r) / (1 - r)
    assert variance_inflation(0.5, 2) == pytest.approx(3)
