import random
import time
from statistics import median

import pytest

from traindyno.core.measurement.steady_state import SteadyState, find_steady_window


def find_steady_state(step_seconds: list[float], *, warmup_steps: int | None = None) -> SteadyState:
    return find_steady_window(step_seconds, warmup_steps=warmup_steps).state


def noisy(levels: list[float], *, seed: int = 1, spread: float = 0.03) -> list[float]:
    source = random.Random(seed)
    return [level * source.lognormvariate(0, spread) for level in levels]


def test_warm_up_ends_where_step_times_settle() -> None:
    steady = find_steady_state(noisy([40.0] + [2.0] * 9 + [1.0] * 90))
    assert steady.is_reached
    assert steady.warmup_steps == 10


def test_without_noise_the_change_is_found_exactly() -> None:
    assert find_steady_state([9.0] + [2.0] * 3 + [1.0] * 30).warmup_steps == 4


def test_the_first_step_never_counts_as_steady() -> None:
    steady = find_steady_state([1.0] * 30)
    assert (steady.warmup_steps, steady.is_reached) == (1, True)


def test_lone_stalls_are_part_of_the_steady_state() -> None:
    levels = [5.0] + [1.0] * 99
    for stalled in (13, 29, 55, 71):
        levels[stalled] = 4.0
    cuts = [find_steady_state(noisy(levels, seed=seed)).warmup_steps for seed in range(20)]
    assert median(cuts) <= 3


def test_stalls_do_not_hide_where_warm_up_ends() -> None:
    def cut(seed: int) -> int:
        source = random.Random(seed)
        levels = [30.0] + [1.5] * 9 + [1.0] * 190
        stalled = [level * (3 if source.random() < 0.05 else 1) for level in levels]
        return find_steady_state(noisy(stalled, seed=seed, spread=0.02)).warmup_steps

    cuts = sorted(cut(seed) for seed in range(40))
    assert cuts[4] >= 9
    assert median(cuts) == 10


@pytest.mark.parametrize(
    ("levels", "warmup_steps", "change"),
    [([2.0] * 60 + [1.0] * 40, 60, "-50"), ([1.0] * 70 + [1.3] * 30, 70, "+30"), ([1.0] * 20 + [1.24] * 180, 20, "")],
)
def test_the_latest_regime_counts_and_a_late_change_is_named(
    levels: list[float], warmup_steps: int, change: str
) -> None:
    steady = find_steady_state(noisy(levels))
    assert (steady.warmup_steps, steady.is_reached, steady.reason) == (warmup_steps, True, None)
    if change:
        assert steady.note is not None
        assert f"changed by {change}" in steady.note
        assert f"at step {warmup_steps}" in steady.note
    else:
        assert steady.note is None


def test_a_change_shortly_before_the_end_leaves_too_few_steps() -> None:
    steady = find_steady_state(noisy([1.0] * 90 + [1.3] * 10))
    assert not steady.is_reached
    assert steady.reason == "step times still changed at step 90 of 100; 10 steps after it are too few"


def test_a_slower_stretch_in_the_middle_is_a_stall_and_not_a_regime() -> None:
    steady = find_steady_window(noisy([1.0] * 100 + [1.5] * 40 + [1.0] * 100))
    assert steady.state.warmup_steps == 1
    (stall,) = steady.stalls
    assert (stall.first, stall.last) == (100, 139)
    # 40 steps x 0.5 s
    assert stall.seconds == pytest.approx(20, rel=0.05)


@pytest.mark.parametrize("direction", [1, -1])
def test_a_drift_is_no_steady_state(direction: int) -> None:
    steady = find_steady_state(noisy([1.0 + direction * 0.03 * step / 200 for step in range(200)], spread=0.005))
    assert not steady.is_reached
    assert steady.reason is not None
    assert "step times drift: by " + ("+" if direction > 0 else "-") in steady.reason


def test_a_change_after_a_given_warm_up_is_no_steady_state() -> None:
    steady = find_steady_state(noisy([1.0] * 60 + [1.3] * 60), warmup_steps=10)
    assert steady.reason == "step times change at step 60, after the warm-up that the suite sets"
    assert (steady.warmup_steps, steady.is_reached) == (10, False)


def test_ten_thousand_steps_take_less_than_a_second() -> None:
    levels = noisy([5.0] + [1.2] * 3_000 + [1.0] * 7_000)
    begin = time.process_time()
    assert find_steady_state(levels).warmup_steps == 3_001
    assert time.process_time() - begin < 1


def test_too_few_steps_say_so() -> None:
    steady = find_steady_state([3.0, 1.0, 1.0])
    assert not steady.is_reached
    assert steady.reason == "too few steps to see warm-up end: 3 of at least 6"


def test_a_given_warm_up_is_taken_as_it_is() -> None:
    steady = find_steady_state([1.0] * 10, warmup_steps=4)
    assert (steady.warmup_steps, steady.is_reached, steady.was_given) == (4, True, True)


def test_a_given_warm_up_that_takes_all_steps_leaves_none() -> None:
    steady = find_steady_state([1.0] * 3, warmup_steps=5)
    assert (steady.warmup_steps, steady.is_reached) == (3, False)
    assert steady.reason == "3 steps ran and the suite's warm-up takes 5"
