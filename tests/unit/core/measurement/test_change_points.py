import random
from math import exp, pi, sqrt

import pytest

from traindyno.core.measurement.change_points import find_regimes


def test_a_second_change_is_measured_by_the_steps_of_its_own_part() -> None:
    # 10 % at step 80, with noise of 2 %: 40 steps on each side show it, whatever came before them
    noise = random.Random(3)
    levels = [
        (0.5 if step >= 40 else 0.0) + (0.1 if step >= 80 else 0.0) + noise.gauss(0, 0.02)
        for step in range(120)
    ]
    regimes = find_regimes(levels)
    assert [regime.first for regime in regimes] == [0, 40, pytest.approx(80, abs=4)]
    assert [regime.level for regime in regimes] == [
        pytest.approx(level, abs=0.02) for level in (0.0, 0.5, 0.6)
    ]


def test_noise_alone_is_one_regime() -> None:
    noise = random.Random(4)
    (regime,) = find_regimes([noise.gauss(0, 0.03) for _ in range(120)])
    assert (regime.first, regime.end) == (0, 120)


def places(*levels: float) -> list[int]:
    return [regime.first for regime in find_regimes(levels)]


def test_a_regime_has_five_steps_at_least() -> None:
    assert places(*[0.0] * 5, *[1.0] * 5) == [0, 5]
    assert places(*[0.0] * 4, *[1.0] * 5) == [0]
    assert places(*[0.0] * 10, *[1.0] * 5) == [0, 10]
    assert places(*[0.0] * 5, *[1.0] * 10) == [0, 5]


def test_a_regime_changes_by_two_percent_at_least_up_or_down() -> None:
    for change, expected in ((0.0201, [0, 20]), (-0.0201, [0, 20]), (0.0199, [0]), (-0.0199, [0])):
        assert places(*[0.5] * 20, *[0.5 + change] * 20) == expected


def test_each_regime_has_the_mean_of_its_steps() -> None:
    regimes = find_regimes([1.0, 1.002] * 15 + [1.1] * 10 + [1.25] * 10)
    assert [(regime.first, regime.end) for regime in regimes] == [(0, 30), (30, 40), (40, 50)]
    assert [regime.level for regime in regimes] == pytest.approx([1.001, 1.1, 1.25])


def test_a_change_exceeds_four_of_its_standard_errors() -> None:
    # differences of 0.05 and 0.1 in turns are 0.2 ÷ 3 on average: the deviation is that by sqrt(pi
    # ÷ 4). A line takes three quarters of the squares of a jump in the middle: of 60 steps against
    # 60, the error is that by sqrt(30 ÷ 4)
    wave = [0.05 * (index * 2 % 3 - 1) for index in range(120)]
    error = 0.2 / 3 * sqrt(pi / 4) / sqrt(30 / 4)
    for errors, expected in ((3.0, 1), (6.0, 2)):
        assert (
            len(find_regimes([*wave[:60], *(value + errors * error for value in wave[60:])]))
            == expected
        )


@pytest.mark.parametrize("shape", ["line", "thermal"])
def test_a_drift_is_no_change_however_far_it_goes(shape: str) -> None:
    noise = random.Random(5)
    drift = [
        0.15 * step / 200 if shape == "line" else 0.08 * (1 - exp(-step / 150))
        for step in range(200)
    ]
    (regime,) = find_regimes([level + noise.gauss(0, 0.02) for level in drift])
    assert (regime.first, regime.end) == (0, 200)


def test_the_tails_of_heavy_noise_are_no_changes() -> None:
    changes = 0
    for seed in range(40):
        noise = random.Random(seed)
        changes += (
            len(
                find_regimes(
                    [0.02 * (noise.expovariate(1) - noise.expovariate(1)) for _ in range(200)]
                )
            )
            > 1
        )
    assert changes <= 1


def test_a_change_within_a_drift_is_found_at_its_place() -> None:
    # the jump of 10 % goes down, the drift of 10 % up: the means of both halves are the same
    noise = random.Random(6)
    levels = [
        0.1 * step / 100 - (0.1 if step >= 100 else 0.0) + noise.gauss(0, 0.005)
        for step in range(200)
    ]
    assert [regime.first for regime in find_regimes(levels)] == [0, 100]


def test_a_stair_is_several_changes_and_no_drift() -> None:
    assert places(*[0.4] * 50, *[0.2] * 50, *[0.0] * 100) == [0, 50, 100]
