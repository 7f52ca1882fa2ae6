import random
import time
from math import exp, log
from statistics import median

import pytest

from traindyno.core.measurement.steady_window import SteadyState, find_steady_window
from traindyno.core.measurement.step_time import measure_step_time


def find_steady_state(step_seconds: list[float], *, warmup_steps: int | None = None) -> SteadyState:
    return measure_step_time(step_seconds, warmup_steps=warmup_steps).steady_state


def noisy(levels: list[float], *, seed: int = 1, spread: float = 0.03) -> list[float]:
    source = random.Random(seed)
    return [level * source.lognormvariate(0, spread) for level in levels]


def test_lone_stalls_are_part_of_the_steady_state() -> None:
    levels = [5.0] + [1.0] * 99
    for stalled in (13, 29, 55, 71):
        levels[stalled] = 4.0
    cuts = [find_steady_state(noisy(levels, seed=seed)).warmup_steps for seed in range(20)]
    assert median(cuts) <= 3


def test_stalls_do_not_hide_the_end_of_the_warm_up() -> None:
    def cut(seed: int) -> int:
        source = random.Random(seed)
        levels = [30.0] + [1.5] * 9 + [1.0] * 190
        stalled = [level * (3 if source.random() < 0.05 else 1) for level in levels]
        return find_steady_state(noisy(stalled, seed=seed, spread=0.02)).warmup_steps

    cuts = sorted(cut(seed) for seed in range(40))
    assert cuts[4] >= 9
    assert median(cuts) == 10


@pytest.mark.parametrize(
    ("levels", "warmup_steps"),
    [
        ([40.0] + [2.0] * 9 + [1.0] * 90, 10),
        ([9.0] + [2.0] * 3 + [1.0] * 30, 4),
        ([2.0] * 60 + [1.0] * 40, 60),
        ([1.0] * 70 + [1.3] * 30, 70),
        ([1.0] * 20 + [1.24] * 180, 20),
    ],
)
def test_the_latest_regime_counts(levels: list[float], warmup_steps: int) -> None:
    steady = find_steady_state(noisy(levels, seed=5, spread=0.01))
    assert (steady.warmup_steps, steady.is_reached, steady.reason) == (warmup_steps, True, None)


@pytest.mark.parametrize("slower", [0.7, 1.3])
def test_a_change_near_the_end_ends_no_warm_up_and_counts_as_a_drift(slower: float) -> None:
    seconds = noisy([1.0] * 180 + [slower] * 20, spread=0.01)
    measured = measure_step_time(seconds)
    assert measured.steady_state.warmup_steps == 1
    assert measured.seconds == pytest.approx(sum(seconds[1:]) / 199)
    assert measured.drift is not None
    # as far as the latest level is from the mean, or farther
    assert 3.5 * measured.drift.change / log(slower) > 0.9
    lasting = measure_step_time(noisy([1.0] * 150 + [slower] * 50, spread=0.01))
    assert lasting.steady_state.warmup_steps == 150


@pytest.mark.parametrize("period", [40, 60, 80])
def test_returning_levels_are_no_drift(period: int) -> None:
    seconds = noisy(
        [1 + 0.06 * (step % period) / period for step in range(5 * period)], spread=0.01
    )
    measured = measure_step_time(seconds)
    assert measured.steady_state.is_reached
    assert measured.drift is not None
    # each of the five slopes rises by 6 %
    assert abs(measured.drift.change) < 0.02


@pytest.mark.parametrize(
    ("numbers", "place"),
    [
        (range(1001, 1101), "step 1091 (steps 1001 to 1100)"),
        (range(1, 101), "step 91 of 100"),
        (range(100), "step 90 of 100"),
    ],
)
def test_the_numbers_of_a_resumed_run_are_said_with_their_range(numbers: range, place: str) -> None:
    levels = noisy([1.0] * 90 + [1.3] * 10)
    steady = measure_step_time(levels, numbers=numbers).steady_state
    assert not steady.is_reached
    assert steady.reason == f"step times still changed at {place}; 10 steps after it are too few"


def test_a_noisy_slower_stretch_is_one_stall_and_does_not_recur() -> None:
    shares = []
    for seed in range(15):
        seconds = noisy([1.0] * 200 + [1.05] * 150 + [1.0] * 150, seed=seed)
        measured = measure_step_time(seconds)
        assert all(event.count == 1 for event in measured.recurring)
        steps = seconds[measured.steady_state.warmup_steps :]
        assert measured.seconds == pytest.approx(sum(steps) / len(steps))
        shares.append(sum(stall.share for stall in measured.undecided_stalls))
    # 150 steps x 0.05 s of 507.5 s
    assert median(shares) == pytest.approx(7.5 / 507.5, rel=0.15)


def test_stalls_within_a_slower_stretch_are_found_beside_it() -> None:
    seconds = [1.0] * 50 + [1.5] * 100 + [1.0] * 50
    for place in (60, 100, 140):
        seconds[place] = 9.0
    window = find_steady_window(seconds)
    assert [(stall.first, stall.last) for stall in window.stalls] == [
        (50, 149),
        (60, 60),
        (100, 100),
        (140, 140),
    ]
    assert [stall.seconds for stall in window.stalls] == pytest.approx([50.0, 7.5, 7.5, 7.5])
    assert measure_step_time(seconds).seconds == pytest.approx(sum(seconds[1:]) / 199)


def test_slow_regimes_next_to_each_other_are_one_stall() -> None:
    window = find_steady_window([1.0] * 100 + [1.6] * 20 + [1.3] * 20 + [1.0] * 100)
    (stall,) = window.stalls
    # 20 x 0.6 s + 20 x 0.3 s
    assert (stall.first, stall.last) == (100, 139)
    assert stall.seconds == pytest.approx(18)


@pytest.mark.parametrize("direction", [1, -1])
def test_a_drift_is_no_steady_state(direction: int) -> None:
    steady = find_steady_state(
        noisy([1.0 + direction * 0.03 * step / 200 for step in range(200)], spread=0.005)
    )
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


@pytest.mark.parametrize("given", [3, 5])
def test_a_given_warm_up_of_all_steps_leaves_none(given: int) -> None:
    steady = find_steady_state([1.0] * 3, warmup_steps=given)
    assert (steady.warmup_steps, steady.is_reached) == (3, False)
    assert steady.reason == f"3 steps ran and the suite's warm-up takes {given}"


@pytest.mark.parametrize(
    ("count", "warmup_steps", "is_reached"),
    [(25, 20, True), (25, 21, False), (100, 80, True), (100, 81, False)],
)
def test_five_steps_and_a_fifth_of_all_must_be_steady(
    count: int, warmup_steps: int, is_reached: bool
) -> None:
    steady = find_steady_state([1.0] * count, warmup_steps=warmup_steps)
    assert (steady.warmup_steps, steady.is_reached) == (warmup_steps, is_reached)


def test_six_steps_are_enough_to_see_warm_up_end_and_five_are_not() -> None:
    assert find_steady_state([3.0] + [1.0] * 5).is_reached
    five = find_steady_state([3.0] + [1.0] * 4)
    assert (five.warmup_steps, five.reason) == (
        1,
        "too few steps to find the end of the warm-up: 5 of at least 6",
    )
    none = find_steady_window([])
    assert (none.first, none.levels, none.stalls, none.trend, none.drift) == (0, (), (), None, None)
    assert (
        find_steady_state([]).reason
        == "too few steps to find the end of the warm-up: 0 of at least 6"
    )


def test_a_returning_level_has_not_ended() -> None:
    # the faster stretch is a part of the run: two levels that take turns are both in the rate
    seconds = [1.0] * 50 + [0.7] * 30 + [1.0] * 60
    measured = measure_step_time(seconds)
    assert measured.steady_state.warmup_steps == 1
    assert measured.seconds == pytest.approx(sum(seconds[1:]) / 139)
    turns = [1.3] * 40 + [1.0] * 40 + [1.3] * 40 + [1.0] * 40 + [1.3] * 40
    assert measure_step_time(turns).seconds == pytest.approx(sum(turns[1:]) / 199)
    assert measure_step_time(turns[:160]).seconds == pytest.approx(sum(turns[1:160]) / 159)


def test_levels_before_the_latest_one_end_even_after_one_return() -> None:
    assert find_steady_state([1.3] * 40 + [1.6] * 40 + [1.3] * 40 + [1.0] * 80).warmup_steps == 120


def test_several_slower_stretches_are_stalls_of_the_level_around_them() -> None:
    window = find_steady_window([1.0] * 40 + [1.5] * 20 + [1.0] * 40 + [1.4] * 20 + [1.0] * 40)
    assert window.first == 1
    assert [(stall.first, stall.last) for stall in window.stalls] == [(40, 59), (100, 119)]
    assert [stall.seconds for stall in window.stalls] == pytest.approx([10.0, 8.0])
    assert window.levels == pytest.approx([0.0] * 160)


def test_a_stall_at_the_end_of_warm_up_belongs_to_it() -> None:
    seconds = [5.0, 4.0, *[1.0] * 60]
    assert find_steady_state(seconds).warmup_steps == 2


def test_only_stalls_after_the_warm_up_are_of_the_steady_window() -> None:
    seconds = [1.0] * 60
    seconds[10] = seconds[40] = 9.0
    window = find_steady_window(seconds, warmup_steps=10)
    assert [stall.first for stall in window.stalls] == [10, 40]
    assert [stall.first for stall in find_steady_window(seconds, warmup_steps=11).stalls] == [40]


def test_a_drift_names_its_size_over_the_whole_log() -> None:
    steady = find_steady_state([exp(0.04 * step / 199) for step in range(200)], warmup_steps=50)
    assert steady.reason == "step times drift: by +4.1% over 200 steps, changes of level left out"
    slow = find_steady_state([exp(0.019 * step / 199) for step in range(200)], warmup_steps=0)
    assert slow.is_reached


def test_the_drift_over_the_window_is_the_slope_within_all_regimes() -> None:
    # 30 % longer until step 80, with a slope of 6 in 10,000 steps, and then of 3
    levels = [0.3 + 0.0006 * step if step < 80 else 0.0003 * (step - 80) for step in range(200)]
    window = find_steady_window([exp(level) for level in levels])
    assert window.first == 80
    # 60 steps after the first tenth, and 120: they count by the squares of their distances from the
    # middle
    before = 60 * (60**2 - 1)
    after = 120 * (120**2 - 1)
    slope = (0.0006 * before + 0.0003 * after) / (before + after)
    assert window.drift is not None
    assert window.drift.change == pytest.approx(slope * 119)
    assert find_steady_state([exp(level) for level in levels]).reason == (
        f"step times drift: by +{100 * (exp(slope * 199) - 1):.1f}% over 200 steps, changes of "
        "level left out"
    )


def test_a_change_of_level_and_changes_in_the_first_tenth_are_no_drift() -> None:
    assert find_steady_state(noisy([1.6] * 80 + [1.0] * 120, spread=0.02)).is_reached
    settling = [1.0 + 0.2 * exp(-step / 6) for step in range(200)]
    assert find_steady_state(noisy(settling, spread=0.02)).is_reached


@pytest.mark.parametrize(("place", "warmup_steps"), [(19, 20), (20, 1)])
def test_stalls_in_the_first_tenth_belong_to_the_warm_up(place: int, warmup_steps: int) -> None:
    seconds = [1.0] * 200
    seconds[place] = seconds[5] = 40.0
    # the first of them alone ends the warm-up after step 5
    assert find_steady_state(seconds).warmup_steps == max(6, warmup_steps)
    assert find_steady_state(seconds, warmup_steps=1).warmup_steps == 1
