import random

import pytest

from traindyno.core.measurement.step_time import measure_step_time
from traindyno.core.measurement.stop_rule import is_known_well_enough, is_look_due


def noisy(count: int, *, spread: float = 0.01, seed: int = 5) -> list[float]:
    source = random.Random(seed)
    return [source.lognormvariate(0, spread) for _ in range(count)]


def test_recurring_events_are_in_the_step_time_at_their_rate_by_hand() -> None:
    phases = {40: {"save": 8.0}, 80: {"save": 8.0}}
    found = measure_step_time([1.0] * 100, phases=phases)
    # 1 s, and 8 s each 40 steps
    assert found.seconds == pytest.approx(1.2)
    assert (found.core_seconds, found.recurring_seconds) == pytest.approx((1.0, 0.2))
    assert found.one_time_seconds == 0


def test_a_logged_compilation_is_left_out_and_paid_once() -> None:
    found = measure_step_time([1.0] * 100, phases={30: {"compile": 40.0}})
    assert found.seconds == pytest.approx(1.0)
    assert found.one_time_seconds == 40.0
    assert found.steady_state.is_reached


def test_a_compilation_before_the_steady_window_is_not_deducted_from_it() -> None:
    found = measure_step_time([9.0, *[1.0] * 99], phases={0: {"compile": 40.0}})
    assert found.one_time_seconds == 0
    assert [event.name for event in found.one_time] == ["compile"]


def test_a_stall_of_unknown_cause_makes_the_run_not_steady_and_is_left_out() -> None:
    seconds = [1.0] * 100
    seconds[50] += 20.0
    found = measure_step_time(seconds)
    assert found.seconds == pytest.approx(1.0)
    assert found.one_time_seconds == pytest.approx(20.0)
    assert found.steady_state.reason == (
        "stalls at step 50 add 20.2% to the time, and too few were seen to tell whether they recur; "
        "the rate leaves them out"
    )


def test_a_stall_that_matters_little_is_in_the_step_time() -> None:
    seconds = [1.0] * 200
    seconds[120] += 1.0
    found = measure_step_time(seconds)
    assert found.steady_state.is_reached
    # 1 s in 199 steady steps
    assert found.seconds == pytest.approx(1 + 1 / 199)


def test_the_interval_of_independent_steps_by_hand() -> None:
    found = measure_step_time(noisy(1_001, spread=0.02))
    # 1.96 x 0.02 / sqrt(1000)
    assert found.relative_half_width() == pytest.approx(0.00124, rel=0.2)


def test_stalls_at_random_widen_the_interval() -> None:
    plain = noisy(1_000)
    source = random.Random(2)
    stalled = [seconds + (5.0 if source.random() < 0.02 else 0.0) for seconds in plain]
    narrow, wide = measure_step_time(plain).relative_half_width(), measure_step_time(stalled).relative_half_width()
    assert narrow is not None
    assert wide is not None
    assert wide > 20 * narrow


def test_nineteen_steady_steps_have_no_interval() -> None:
    assert measure_step_time([1.0] * 20).relative_half_width() is None
    assert measure_step_time([1.0] * 21).relative_half_width() == 0


def test_looks_are_due_at_400_steps_600_and_900() -> None:
    assert [is_look_due(steps, 0) for steps in (399, 400)] == [False, True]
    assert [is_look_due(steps, 1) for steps in (599, 600)] == [False, True]
    assert [is_look_due(steps, 2) for steps in (899, 900)] == [False, True]


def test_a_later_look_asks_for_more() -> None:
    seconds = noisy(400, spread=0.08)
    width = measure_step_time(seconds).relative_half_width(confidence=0.975)
    assert width is not None
    # the first look spends 2.5 %, the second 5 % ÷ 6
    assert is_known_well_enough(seconds, relative_half_width=width * 1.001, look=1)
    assert not is_known_well_enough(seconds, relative_half_width=width * 0.999, look=1)
    assert not is_known_well_enough(seconds, relative_half_width=width * 1.001, look=2)


@pytest.mark.parametrize(
    "seconds",
    [
        [1.0] * 200 + [1.3] * 200,
        [1.0 + 0.04 * step / 400 for step in range(400)],
        [1.0] * 200 + [40.0] + [1.0] * 199,
    ],
    ids=["a late change", "a drift", "a stall of unknown cause"],
)
def test_step_times_that_are_not_steady_are_not_known(seconds: list[float]) -> None:
    assert not is_known_well_enough(seconds, relative_half_width=0.01, look=1)
    assert is_known_well_enough([1.0] * 400, relative_half_width=0.01, look=1)


def test_a_change_that_is_small_against_the_half_width_asked_for_does_not_matter() -> None:
    seconds = [1.0] * 200 + [1.3] * 200
    # all steps take 1.15 s on average, the latest ones 1.3 s: 12 % apart
    assert is_known_well_enough(seconds, relative_half_width=0.5, look=1)
    assert not is_known_well_enough(seconds, relative_half_width=0.2, look=1)
