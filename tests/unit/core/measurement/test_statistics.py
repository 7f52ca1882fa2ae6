import random
from math import exp, log, sqrt

import pytest

from traindyno.core.measurement.many_comparisons import adjust_by_holm
from traindyno.core.measurement.statistics import compare, estimate, estimate_share
from traindyno.core.measurement.student_t import t_cumulative, t_quantile, two_sided_p


@pytest.mark.parametrize(
    ("degrees", "probability", "published"),
    [  # any printed table of Student's t
        (1, 0.975, 12.706),
        (2, 0.975, 4.303),
        (3, 0.95, 2.353),
        (4, 0.975, 2.776),
        (5, 0.995, 4.032),
        (10, 0.975, 2.228),
        (30, 0.9, 1.310),
        (120, 0.975, 1.980),
    ],
)
def test_quantiles_are_those_of_the_published_table(degrees: int, probability: float, published: float) -> None:
    assert t_quantile(probability, degrees) == pytest.approx(published, abs=5e-4)


@pytest.mark.parametrize("degrees", [1, 2.5, 7, 40])
def test_quantile_and_distribution_are_inverse(degrees: float) -> None:
    for probability in (0.001, 0.2, 0.5, 0.9, 0.9999):
        assert t_cumulative(t_quantile(probability, degrees), degrees) == pytest.approx(probability, abs=1e-12)


def test_one_and_two_degrees_agree_with_their_closed_forms() -> None:
    # one degree of freedom is Cauchy: P(|t| > 1) = 1/2; two: P(t < x) = 1/2 + x / (2 sqrt(2 + x^2))
    assert two_sided_p(1.0, 1) == pytest.approx(0.5, abs=1e-14)
    assert t_cumulative(3.0, 2) == pytest.approx(0.5 + 3 / (2 * sqrt(11)), abs=1e-14)


def test_an_estimate_by_hand() -> None:
    # logs -0.1, 0, 0.1: mean 0, deviation 0.1, error 0.1 / sqrt(3) = 0.057735, t(0.975, 2) = 4.302653
    found = estimate([exp(-0.1), 1.0, exp(0.1)])
    assert found.mean == pytest.approx(1.0)
    assert found.interval is not None
    assert log(found.interval.high) == pytest.approx(0.057735 * 4.302653, abs=1e-5)
    assert log(found.interval.low) == pytest.approx(-0.057735 * 4.302653, abs=1e-5)
    # deviation of 0.904837, 1 and 1.105171 is 0.100208, their mean 1.003336
    assert found.variation == pytest.approx(0.099875, abs=1e-5)


def test_a_share_by_hand() -> None:
    # mean 0.9, deviation 0.05, error 0.05 / sqrt(3) = 0.028868; t(0.975, 2) x error = 0.124207, cut at 1
    found = estimate_share([0.85, 0.9, 0.95])
    assert found.mean == pytest.approx(0.9)
    assert found.variation == pytest.approx(0.05 / 0.9)
    assert found.interval is not None
    assert found.interval.low == pytest.approx(0.775793, abs=1e-5)
    assert found.interval.high == 1.0


def test_shares_of_zero_have_no_variation() -> None:
    found = estimate_share([0.0, 0.0])
    assert found.variation is None
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == (0.0, 0.0)


def test_one_trial_has_no_interval() -> None:
    found = estimate([5.0])
    assert found.mean == pytest.approx(5.0)
    assert (found.interval, found.variation) == (None, None)
    compared = compare([5.0], [4.0, 4.1])
    assert (compared.p, compared.interval, compared.p_at_least(1.0)) == (None, None, None)


def test_a_comparison_by_hand() -> None:
    # logs 0.0 and 0.2 (mean 0.1, variance 0.02) against -0.1 and 0.1 (mean 0, variance 0.02): difference 0.1,
    # error sqrt(0.02/2 + 0.02/2) = 0.141421, 2 degrees; t = 0.707107: p = 1 - 0.707107/sqrt(2.5) = 0.552786
    found = compare([1.0, exp(0.2)], [exp(-0.1), exp(0.1)])
    assert found.ratio == pytest.approx(exp(0.1))
    assert found.p == pytest.approx(0.552786, abs=1e-5)
    assert found.interval is not None
    assert log(found.interval.high) == pytest.approx(0.1 + 4.302653 * 0.141421, abs=1e-4)
    assert found.standard_error == pytest.approx(sqrt(0.02))
    # one-sided, of a ratio of at least exp(0.3): (0.3 - 0.1) / 0.141421 = 1.414214; 0.5 - 1.414214 / (2 x 2) = 0.146447
    assert found.p_at_least(exp(0.3)) == pytest.approx(0.146447, abs=1e-5)


def test_a_ratio_turned_over_has_its_interval_turned_over() -> None:
    first, second = [1.0, 1.1, 1.05], [0.8, 0.85, 0.79]
    there, back = compare(first, second), compare(second, first)
    assert there.interval is not None
    assert back.interval is not None
    assert back.ratio == pytest.approx(1 / there.ratio)
    assert back.interval.low == pytest.approx(1 / there.interval.high)


def test_equal_trials_of_a_replay_compare_exactly() -> None:
    assert compare([2.0, 2.0], [1.0, 1.0]).p == 0
    assert compare([2.0, 2.0], [2.0, 2.0]).p == 1


@pytest.mark.parametrize(("count", "spreads"), [(3, (0.05, 0.05)), (5, (0.05, 0.15)), (2, (0.05, 0.05))])
def test_ratio_intervals_cover_the_truth_as_often_as_they_say(count: int, spreads: tuple[float, float]) -> None:
    source = random.Random(20261121)
    hits = 0
    for _ in range(2000):
        first = [1.3 * source.lognormvariate(0, spreads[0]) for _ in range(count)]
        second = [source.lognormvariate(0, spreads[1]) for _ in range(count)]
        interval = compare(first, second).interval
        assert interval is not None
        hits += interval.low <= 1.3 <= interval.high
    assert hits / 2000 >= 0.94


def test_holm_by_hand() -> None:
    # sorted 0.01 x 3 = 0.03; 0.02 x 2 = 0.04; 0.03 x 1 = 0.03, raised to the 0.04 before it
    assert adjust_by_holm([0.03, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])
    assert adjust_by_holm([0.9, 0.8]) == [1.0, 1.0]
    assert adjust_by_holm([]) == []
