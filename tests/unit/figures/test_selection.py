"""What may be claimed of the best cell, by hand-made comparisons."""

from math import ceil, log, sqrt

import pytest

from tests.unit.run_samples import known
from traindyno.figures.distributions import t_quantile
from traindyno.figures.estimates import Comparison, comparison_of
from traindyno.figures.selection import (
    Relation,
    correct_for_selection,
    count_contenders,
    relate,
    settle,
    trials_to_decide,
)


def behind(percent: float, error: float, degrees: float = 8) -> Comparison:
    """The best is ahead by so many percent (of logarithms), known with this standard error in
    percent.
    """
    return comparison_of(-percent / 100, (error / 100) ** 2, degrees)


def relation(percent: float, error: float, tolerance: float = 0.02) -> Relation:
    (rival,) = relate([behind(percent, error)], tolerance=tolerance, significance=0.05)
    return rival


def test_each_relation_follows_from_the_interval_and_the_zone() -> None:
    # t(0.975, 8) = 2.306, t(0.95, 8) = 1.860, the zone reaches to log(1.02) = 1.98 %
    assert relation(2.4, 1.0) is Relation.BEATEN
    assert relation(2.2, 1.0) is Relation.NOT_BETTER
    assert relation(0.0, 1.0) is Relation.EQUIVALENT
    assert relation(0.0, 1.1) is Relation.OPEN
    assert relation(0.0, 1.1, tolerance=0.05) is Relation.EQUIVALENT
    assert relate([Comparison(ratio=0.5)], tolerance=0.02, significance=0.05) == (Relation.UNKNOWN,)


def test_contenders_share_the_significance_of_not_better_and_not_of_beaten() -> None:
    close = behind(0.2, 1.0)
    assert relate([close], tolerance=0.02, significance=0.05) == (Relation.NOT_BETTER,)
    assert relate([close] * 7, tolerance=0.02, significance=0.05) == (Relation.OPEN,) * 7
    # cells far behind are no contenders
    far = [behind(30, 1.0)] * 30
    assert count_contenders([close, *far]) == 1
    assert relate([close, *far], tolerance=0.02, significance=0.05)[0] is Relation.NOT_BETTER
    assert relate([behind(2.4, 1.0)] * 30, tolerance=0.0, significance=0.05)[0] is Relation.BEATEN


def test_a_cell_is_beaten_beside_open_ones_only_at_its_share_of_all_pairs() -> None:
    open_cell = behind(0.0, 1.1)
    of_three_pairs = t_quantile(1 - 0.05 / 3 / 2, 8)
    below, above = (behind(of_three_pairs + shift, 1.0) for shift in (-0.01, 0.01))
    for others in ([], [behind(9.0, 1.0)], [behind(9.0, 1.0), behind(10.0, 1.0)]):
        # beaten cells leave the pairs of two others and the best
        found = relate([open_cell, below, *others], tolerance=0.02, significance=0.05)
        assert found == (Relation.OPEN, Relation.NOT_BETTER, *[Relation.BEATEN] * len(others))
        found = relate([open_cell, above, *others], tolerance=0.02, significance=0.05)
        assert found == (Relation.OPEN, *[Relation.BEATEN] * (1 + len(others)))
    # the interval is that of the test
    rivals = settle({"open": open_cell, "below": below}, tolerance=0.02, significance=0.05)
    assert known(rivals[0].comparison.interval).confidence == pytest.approx(1 - 0.05 / 3)


def test_a_clear_winner_keeps_its_figures_and_one_among_equals_does_not() -> None:
    clear = correct_for_selection([behind(10, 1.0), behind(12, 1.0)])
    assert (clear.shift, clear.upper_tail) == (0.0, 0.025)
    # two cells 1 % apart with an error of 2 %: the difference is noise, both are taken for the mean
    # of the two
    equal = correct_for_selection([behind(1.0, 2.0)])
    assert equal.shift == pytest.approx(0.005)
    assert equal.upper_tail == 0.0125
    assert equal.of_rate().shift == pytest.approx(-0.005)
    assert equal.of_rate().lower_tail == 0.0125
    # each of two looks has half of the significance
    first_look = correct_for_selection([behind(1.0, 2.0)], 0.025)
    assert (first_look.upper_tail, first_look.lower_tail) == pytest.approx((0.00625, 0.0125))


def test_the_deciding_trials_exceed_the_present_ones() -> None:
    # error 1 % with 5 trials: s^2 = 5e-4; to show 0.1 + 1.98 %: 5e-4 (t(0.95, 8) + t(0.8, 8))^2 /
    # 0.0208^2 = 8.7
    assert trials_to_decide([behind(0.1, 1.0)], trials=5, tolerance=0.02) == 9
    # a spread known with 2 degrees of freedom counts as that of 5 trials, with 4: 5e-4 (2.132 +
    # 0.941)^2 / 0.0208^2
    assert trials_to_decide([behind(0.1, 1.0, degrees=2)], trials=5, tolerance=0.02) == 11
    # three cells 3 % behind, without a zone: 2e-3 (t(0.975, 12) + t(1 - 0.2 / 3, 12))^2 / 0.03^2 =
    # 31.9
    assert trials_to_decide([behind(3.0, 2.0)] * 3, trials=5, tolerance=0.0) == 32
    assert trials_to_decide([behind(5.0, 0.1)], trials=5, tolerance=0.02) == 6
    assert trials_to_decide([behind(0.0, 20.0)], trials=5, tolerance=0.02) is None
    assert trials_to_decide([Comparison(ratio=1.0)], trials=1, tolerance=0.02) is None
    # at the level of disturbed runs: 5e-4 (t(0.993, 8) + t(0.8, 8))^2 / 0.03^2 = 8.9
    assert trials_to_decide([behind(3.0, 1.0)], trials=5, tolerance=0.0, level=0.007) == 9
    assert trials_to_decide([behind(3.0, 1.0)], trials=5, tolerance=0.0) == 6


def test_the_best_of_several_is_shrunk_by_the_share_of_noise_in_their_differences() -> None:
    # 1.5 % and 1 % behind: center 2.5 / 3 %, spread (0.833^2 + 0.667^2 + 0.167^2) / 2 = 0.5833
    # square %, error 1 / 2: 0.5 / 0.5833 x 0.8333 = 1 / 1.4 %
    rivals = [behind(1.5, 1.0), behind(1.0, 1.0)]
    correction = correct_for_selection(rivals)
    assert correction.shift == pytest.approx(0.01 / 1.4)
    assert (correction.upper_tail, correction.lower_tail) == pytest.approx((0.025 / 3, 0.025))
    # neither a cell that is clearly beaten nor one with an unknown spread changes that
    assert correct_for_selection(
        [*rivals, behind(9.0, 1.0), Comparison(ratio=0.9)]
    ).shift == pytest.approx(0.01 / 1.4)
    assert (
        correct_for_selection([*rivals, behind(9.0, 1.0), Comparison(ratio=0.9)]).upper_tail
        == correction.upper_tail
    )


def test_errors_of_several_rivals_count_by_the_mean_of_their_squares() -> None:
    # center 4.5 / 3 %
    correction = correct_for_selection([behind(2.0, 1.2), behind(2.5, 1.4)])
    error = (1.44 + 1.96) / 2 / 2
    spread = (1.5**2 + 0.5**2 + 1.0**2) / 2
    assert correction.shift == pytest.approx(error / spread * 0.015)


def test_rivals_exactly_equal_to_the_best_shift_nothing_and_share_its_upper_tail() -> None:
    correction = correct_for_selection([behind(0.0, 1.0)])
    assert (correction.shift, correction.upper_tail, correction.lower_tail) == (0.0, 0.0125, 0.025)


def test_a_cell_at_the_level_itself_is_not_beaten() -> None:
    rival = behind(2.0, 1.0)
    (at_level,) = relate([rival], tolerance=0.02, significance=known(rival.p))
    assert at_level is not Relation.BEATEN
    # a rival that is ahead of the best is not beaten either
    assert count_contenders([behind(-20.0, 1.0)]) == 1


def test_the_trials_for_several_open_cells_follow_steins_rule() -> None:
    cells = [behind(0.5, 1.0, degrees=30), behind(3.0, 2.0, degrees=20)]
    # s^2 = (1 + 4) / 2 x 6 square %, with 25 degrees; 20 % of misses and the one-sided 5 % are
    # shared by both
    variance = 2.5 * 6
    missed = t_quantile(1 - 0.2 / 2, 25)
    apart = t_quantile(0.975, 25) + missed
    within = t_quantile(1 - 0.05 / 2, 25) + missed
    zone = 100 * log(1.02)
    needs = [min((apart / gap) ** 2, (within / (zone + gap)) ** 2) for gap in (0.5, 3.0)]
    assert trials_to_decide(cells, trials=6, tolerance=0.02) == ceil(variance * max(needs))
    # a cell that is ahead counts as level
    assert trials_to_decide([behind(-1.0, 2.0)], trials=6, tolerance=0.02) == trials_to_decide(
        [behind(0.0, 2.0)], trials=6, tolerance=0.02
    )


def test_the_degrees_of_freedom_of_the_trials_count_if_a_comparison_has_fewer() -> None:
    # 2 cells x (6 - 1) trials are 10, more than the mean of 2 and 4
    few = [behind(0.1, 1.0, degrees=2), behind(0.1, 1.0, degrees=4)]
    enough = [behind(0.1, 1.0, degrees=10), behind(0.1, 1.0, degrees=10)]
    assert trials_to_decide(few, trials=6, tolerance=0.02) == trials_to_decide(
        enough, trials=6, tolerance=0.02
    )
    more = [behind(0.1, 1.0, degrees=40), behind(0.1, 1.0, degrees=40)]
    assert trials_to_decide(more, trials=6, tolerance=0.02) != trials_to_decide(
        enough, trials=6, tolerance=0.02
    )


def test_at_most_200_trials_are_proposed() -> None:
    # level cells with many degrees: s^2 (1.645 + 0.842)^2 / zone^2, where one trial more is 0.25 %
    # of s
    zone = log(1.02)
    factor = (t_quantile(0.95, 1e6) + t_quantile(0.8, 1e6)) / zone
    counts = [
        trials_to_decide(
            [behind(0.0, 100 * sqrt(wanted / 4) / factor, degrees=1e6)], trials=4, tolerance=0.02
        )
        for wanted in (199.5, 200.5)
    ]
    assert counts == [200, None]


def test_one_cell_without_a_known_spread_leaves_the_need_unknown() -> None:
    assert (
        trials_to_decide([behind(0.1, 1.0), Comparison(ratio=0.99)], trials=5, tolerance=0.02)
        is None
    )
    assert trials_to_decide([], trials=5, tolerance=0.02) is None
