import random

import pytest

from traindyno.core.measurement.change_points import find_regimes


def test_a_second_change_is_measured_by_the_steps_of_its_own_part() -> None:
    # 5 % at step 80, with noise of 3 %: 40 steps on each side show it, whatever came before them
    noise = random.Random(3)
    levels = [
        (0.5 if step >= 40 else 0.0) + (0.05 if step >= 80 else 0.0) + noise.gauss(0, 0.03) for step in range(120)
    ]
    found = find_regimes(levels)
    assert [regime.first for regime in found] == [0, 40, pytest.approx(80, abs=4)]
    assert [regime.level for regime in found] == [pytest.approx(level, abs=0.02) for level in (0.0, 0.5, 0.55)]


def test_noise_alone_is_one_regime() -> None:
    noise = random.Random(4)
    (found,) = find_regimes([noise.gauss(0, 0.03) for _ in range(120)])
    assert (found.first, found.end) == (0, 120)
