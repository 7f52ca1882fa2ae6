from math import exp, inf, log, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import examples
from tests.unit.run_samples import known
from traindyno.figures.distributions import two_sided_p
from traindyno.figures.estimates import (
    Comparison,
    Estimate,
    Interval,
    compare,
    compared,
    comparison_of,
    estimate,
    estimate_of_mean,
    estimate_share,
)
from traindyno.figures.log_means import LogMean, log_mean, total_variance

TRIALS = st.lists(st.floats(0.5, 2), min_size=2, max_size=6)


def test_shares_of_zero_have_no_variation() -> None:
    share = estimate_share([0.0, 0.0])
    assert share.variation is None
    assert share.interval is not None
    assert (share.interval.low, share.interval.high) == (0.0, 0.0)


def test_one_trial_has_no_interval() -> None:
    mean = estimate([5.0])
    assert mean.mean == pytest.approx(5.0)
    assert (mean.interval, mean.variation) == (None, None)
    compared = compare([5.0], [4.0, 4.1])
    assert (compared.p, compared.interval, compared.p_at_least(1.0)) == (None, None, None)


@examples(100)
@given(TRIALS, TRIALS, st.floats(1e-6, 1e6))
def test_a_ratio_has_no_unit_and_is_turned_over_with_its_interval(
    first: list[float], second: list[float], unit: float
) -> None:
    there = compare(first, second)
    back = compare(second, first)
    scaled = compare([unit * value for value in first], [unit * value for value in second])
    assert back.ratio == pytest.approx(1 / there.ratio)
    assert scaled.ratio == pytest.approx(there.ratio)
    assert there.interval is not None
    assert known(back.interval).low == pytest.approx(1 / there.interval.high)
    assert known(scaled.interval).high == pytest.approx(there.interval.high, rel=1e-6)
    assert there.interval.low <= there.ratio <= there.interval.high


def test_equal_trials_of_a_replay_compare_exactly() -> None:
    assert compare([2.0, 2.0], [1.0, 1.0]).p == 0
    assert compare([2.0, 2.0], [2.0, 2.0]).p == 1


def test_two_trials_that_agree_tell_little_beside_many() -> None:
    """Their spread may be that of the many: of equal cells, one in eight pairs would be apart."""
    many = [1 + share / 100 for share in range(-10, 10)]
    compared = compare([1.05, 1.0501], many)
    assert compared.degrees_of_freedom == pytest.approx(1.21, abs=0.01)
    assert known(compared.p) > 0.05
    assert compare(many, many).degrees_of_freedom == pytest.approx(38)


def test_a_known_error_has_its_own_degrees_of_freedom() -> None:
    # 4 and 1 of variance with 3 and 6 degrees: 25 / (16 / 3 + 1 / 6) = 150 / 33
    assert total_variance([(4.0, 3), (1.0, 6)]) == pytest.approx((5.0, 150 / 33))
    assert total_variance([(4.0, 3), (1.0, inf)]) == pytest.approx((5.0, 25 / (16 / 3)))
    # without any variance the fewest count
    assert total_variance([(0.0, 3), (0.0, 6)]) == (0.0, 3)


def test_a_price_with_an_error_of_its_own_scales_a_comparison() -> None:
    comparison = comparison_of(0.1, 0.0004, 5)
    scaled = compared(comparison.difference.plus(0.05, 0.0005))
    assert scaled.ratio == pytest.approx(exp(0.15))
    assert scaled.standard_error == pytest.approx(0.03)
    # the square of 9 over a fifth of the square of 4
    assert scaled.degrees_of_freedom == pytest.approx(25.3125)
    assert scaled.p == pytest.approx(two_sided_p(5.0, 25.3125))


def test_a_price_with_an_error_of_its_own_moves_and_widens_a_mean() -> None:
    mean = LogMean(mean=1.0, variance=0.0004, degrees_of_freedom=5)
    assert mean.plus(0.5, 0.0) == LogMean(mean=1.5, variance=0.0004, degrees_of_freedom=5)
    wider = mean.plus(0.5, 0.0005)
    assert wider.mean == 1.5
    assert wider.variance == pytest.approx(0.0009)
    assert wider.degrees_of_freedom == pytest.approx(25.3125)
    unknown = LogMean(mean=1.0, variance=None, degrees_of_freedom=None)
    assert unknown.plus(-0.5, 0.0005) == LogMean(mean=0.5, variance=None, degrees_of_freedom=None)


def test_the_mean_of_logarithms_and_its_inflated_variance() -> None:
    # logs 0, 0.2 and 0.4: variance 0.04, of the mean 0.04 / 3
    logs = log_mean([1.0, exp(0.2), exp(0.4)])
    assert logs.mean == pytest.approx(0.2)
    assert logs.variance == pytest.approx(0.04 / 3)
    assert logs.degrees_of_freedom == 2
    assert log_mean([1.0, exp(0.2), exp(0.4)], inflation=1.5).variance == pytest.approx(0.02)
    assert log_mean([1.0]) == LogMean(mean=0.0, variance=None, degrees_of_freedom=None)


def test_an_interval_with_unequal_tails() -> None:
    # t(0.9, 2) = 1.885618 downwards and t(0.975, 2) = 4.302653 upwards, of an error of 0.1
    interval = known(comparison_of(0.0, 0.01, 2).interval_with(0.1, 0.025))
    assert (log(interval.low), log(interval.high)) == pytest.approx((-0.1885618, 0.4302653))
    assert interval.confidence == 0.875
    # two-sided 95 % has 2.5 % at each end
    both = known(comparison_of(0.0, 0.01, 2).with_interval().interval)
    assert (log(both.low), log(both.high)) == pytest.approx((-0.4302653, 0.4302653))


def test_the_tails_of_an_interval_may_differ() -> None:
    values = [1.0, exp(0.2), exp(0.4)]
    # t(0.9, 2) and t(0.95, 2) times the error sqrt(0.04 / 3)
    tails = known(estimate_of_mean(log_mean(values), values, tails=(0.1, 0.05)).interval)
    reach = sqrt(0.04 / 3)
    assert (log(tails.low), log(tails.high)) == pytest.approx(
        (0.2 - 1.885618 * reach, 0.2 + 2.919986 * reach)
    )


def test_the_one_sided_p_value_without_an_error_is_0_or_1() -> None:
    exact = comparison_of(0.1, 0.0, 2)
    assert [exact.p_at_least(exp(reach)) for reach in (0.2, 0.0)] == [0.0, 1.0]


def test_a_share_of_one_run_has_no_interval_and_two_have_one() -> None:
    assert estimate_share([0.4]) == Estimate(mean=0.4, count=1, variation=None, interval=None)
    # deviation 0.141421, error 0.1, t(0.975, 1) = 12.706205: cut at 0 and at 1
    share = estimate_share([0.4, 0.6])
    assert (share.interval, share.count) == (Interval(low=0.0, high=1.0, confidence=0.95), 2)
    near = known(estimate_share([0.5, 0.502]).interval)
    assert (near.low, near.high) == pytest.approx((0.501 - 0.012706205, 0.501 + 0.012706205))


def test_an_unknown_side_leaves_a_comparison_without_a_spread() -> None:
    unknown = LogMean(mean=0.3, variance=None, degrees_of_freedom=None)
    known = LogMean(mean=0.1, variance=0.01, degrees_of_freedom=4)
    assert compared(unknown.minus(known)) == Comparison(ratio=exp(0.3 - 0.1))
    assert compared(known.minus(unknown)) == Comparison(ratio=exp(0.1 - 0.3))
