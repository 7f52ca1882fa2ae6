import random
from dataclasses import replace
from math import sqrt

import pytest

from traindyno.core.measurement.stalls import STALL
from traindyno.core.measurement.step_time import measure_step_time
from traindyno.core.measurement.stop_rule import is_known_well_enough, is_look_due
from traindyno.figures.autocorrelation import estimate_mean
from traindyno.figures.distributions import t_half_width


def noisy(count: int, *, spread: float = 0.01, seed: int = 5) -> list[float]:
    source = random.Random(seed)
    return [source.lognormvariate(0, spread) for _ in range(count)]


def test_recurring_events_are_in_the_step_time_at_their_rate_by_hand() -> None:
    phases = {40: {"save": 8.0}, 80: {"save": 8.0}}
    measured = measure_step_time([1.0] * 100, phases=phases)
    # 1 s, and 8 s each 40 steps
    assert measured.seconds == pytest.approx(1.2)
    assert (measured.core_seconds, measured.recurring_seconds) == pytest.approx((1.0, 0.2))
    assert measured.one_time_seconds == 0


def test_a_logged_compilation_is_left_out_and_paid_once() -> None:
    measured = measure_step_time([1.0] * 100, phases={30: {"compile": 40.0}})
    assert measured.seconds == pytest.approx(1.0)
    assert measured.one_time_seconds == 40.0
    assert measured.steady_state.is_reached


def test_a_possibly_unique_stall_is_in_the_rate_and_undecided() -> None:
    seconds = [1.0] * 100
    seconds[60] += 20.0
    measured = measure_step_time(seconds)
    # 20 s in 99 steps
    assert measured.seconds == pytest.approx(1 + 20 / 99)
    assert (measured.one_time, [event.count for event in measured.recurring]) == ((), [1])
    assert measured.steady_state.is_reached
    # 59 steps before it had none: at most 20 s in each 60 steps
    (stall,) = measured.undecided_stalls
    assert stall.share == pytest.approx(20 / (99 + 20))
    # of the same time: 99 steps and the stall
    assert stall.share_again == pytest.approx(20 / 60 * 99 / (99 + 20))


def test_a_phase_logged_once_counts_as_much_as_an_unlogged_stall() -> None:
    stalled = [1.0] * 300
    stalled[100] += 60.0
    logged = measure_step_time([1.0] * 300, phases={100: {"evaluate": 60.0}})
    unlogged = measure_step_time(stalled)
    assert logged.seconds == pytest.approx(unlogged.seconds)
    (stall,) = logged.undecided_stalls
    assert stall.name == "evaluate"
    assert unlogged.undecided_stalls == (replace(stall, name=STALL),)
    assert (logged.one_time, [event.name for event in logged.recurring]) == ((), ["evaluate"])


@pytest.mark.parametrize(
    ("step", "warmup_steps", "is_counted"), [(19, None, False), (20, None, True), (19, 1, True)]
)
def test_a_single_phase_in_the_first_tenth_belongs_to_the_warm_up(
    step: int, warmup_steps: int | None, is_counted: bool
) -> None:
    measured = measure_step_time(
        [1.0] * 200, phases={step: {"autotune": 5.0}}, warmup_steps=warmup_steps
    )
    assert (measured.seconds > 1.01) is is_counted
    assert bool(measured.one_time) is not is_counted


def test_the_longer_part_without_a_stall_says_how_often_it_may_come() -> None:
    seconds = [1.0] * 200
    seconds[50] = seconds[51] = 11.0
    (stall,) = measure_step_time(seconds).undecided_stalls
    # 148 steps after it, and its own 2: at most 20 s in each 150
    assert stall.share_again == pytest.approx(20 / 150 * 199 / (199 + 20))


@pytest.mark.parametrize("places", [(97, 194), (60, 150), (21, 30), (30, 80, 170)])
def test_a_stall_seen_twice_recurs_and_nothing_is_left_undecided(
    places: tuple[int, ...],
) -> None:
    seconds = [1.0] * 200
    for place in places:
        seconds[place] += 30.0
    measured = measure_step_time(seconds)
    assert [(event.name, event.count) for event in measured.recurring] == [(STALL, len(places))]
    assert measured.undecided_stalls == ()
    assert measured.recurring_seconds == pytest.approx(30 * len(places) / 199)


def test_all_time_after_the_warm_up_counts_except_one_time_phases() -> None:
    source = random.Random(11)
    seconds = [
        source.lognormvariate(0, 0.02) + (8.0 if source.random() < 0.03 else 0.0)
        for _ in range(300)
    ]
    seconds[140:180] = [1.8 * value for value in seconds[140:180]]
    measured = measure_step_time(seconds, phases={200: {"compile": 50.0}})
    first = measured.steady_state.warmup_steps
    assert measured.seconds == pytest.approx(sum(seconds[first:]) / (300 - first), rel=0.002)


def test_the_interval_of_independent_steps_by_hand() -> None:
    measured = measure_step_time(noisy(1_001, spread=0.02))
    # 1.96 x 0.02 / sqrt(1000)
    assert measured.relative_half_width() == pytest.approx(0.00124, rel=0.2)


def test_stalls_at_random_widen_the_interval() -> None:
    plain = noisy(1_000)
    source = random.Random(2)
    stalled = [seconds + (5.0 if source.random() < 0.02 else 0.0) for seconds in plain]
    narrow = measure_step_time(plain).relative_half_width()
    wide = measure_step_time(stalled).relative_half_width()
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
def test_unsteady_step_times_are_not_known(seconds: list[float]) -> None:
    assert not is_known_well_enough(seconds, relative_half_width=0.01, look=1)
    assert is_known_well_enough([1.0] * 400, relative_half_width=0.01, look=1)


def test_the_variances_of_the_steps_and_of_recurring_phases_are_added() -> None:
    seconds = noisy(150)
    measured = measure_step_time(
        seconds, phases={40: {"save": 4.0}, 80: {"save": 8.0}, 120: {"save": 6.0}}, warmup_steps=0
    )
    core = estimate_mean(seconds)
    assert core is not None
    # the saves have a variance of 4; of the mean of three each 40 steps, with 2 degrees of freedom
    saves = 4 / 3 / 40**2
    assert measured.variance == pytest.approx(core.variance + saves)
    expected = (core.variance + saves) ** 2 / (
        core.variance**2 / core.degrees_of_freedom + saves**2 / 2
    )
    assert measured.degrees_of_freedom == pytest.approx(expected)
    assert measured.seconds == pytest.approx(core.mean + 6 / 40)
    assert measured.relative_error == pytest.approx(sqrt(measured.variance or 0) / measured.seconds)
    assert measured.relative_half_width(confidence=0.9) == pytest.approx(
        t_half_width(sqrt(measured.variance or 0) / measured.seconds, expected, 0.9)
    )


def test_without_noise_the_degrees_of_freedom_come_from_the_steps() -> None:
    measured = measure_step_time([1.0] * 101)
    assert (measured.variance, measured.degrees_of_freedom) == (0, 99)


def test_a_run_within_its_warm_up_has_no_step_time() -> None:
    measured = measure_step_time(
        [1.0] * 10,
        phases={3: {"save": 2.0}, 7: {"save": 2.0}, 0: {"compile": 1.0}},
        warmup_steps=10,
    )
    assert (
        measured.core_seconds,
        measured.one_time_seconds,
        measured.variance,
        measured.relative_error,
    ) == (
        0,
        0,
        None,
        None,
    )
    assert [event.name for event in measured.recurring] == ["save"]
    assert [event.name for event in measured.one_time] == ["compile"]


def test_one_time_events_are_in_the_order_of_their_steps() -> None:
    seconds = [1.0] * 100
    seconds[50] += 20.0
    measured = measure_step_time(
        seconds, phases={70: {"compile": 3.0}, 2: {"load": 1.0}}, warmup_steps=2
    )
    assert [(event.name, event.step) for event in measured.one_time] == [
        ("load", 2),
        ("compile", 70),
    ]
    # those of the steady window, which begins at step 2
    assert measured.one_time_seconds == pytest.approx(4.0)
    assert (
        measure_step_time(seconds, phases={2: {"load": 1.0}}, warmup_steps=3).one_time_seconds == 0
    )


@pytest.mark.parametrize(("slow", "is_known"), [(80, True), (81, False)])
def test_the_latest_regime_must_begin_in_the_first_fifth_of_the_steps(
    slow: int, is_known: bool
) -> None:
    seconds = [1.3] * slow + [1.0] * (400 - slow)
    assert is_known_well_enough(seconds, relative_half_width=0.02, look=1) is is_known


def test_a_mean_off_by_half_of_the_half_width_is_known() -> None:
    # all steps but the first take 1.15 s on average and the latest ones 1.3 s: 0.1154 apart, of 399
    # steps 0.1151
    seconds = [1.0] * 200 + [1.3] * 200
    assert is_known_well_enough(seconds, relative_half_width=0.232, look=1)
    assert not is_known_well_enough(seconds, relative_half_width=0.229, look=1)


def test_a_drift_below_the_half_width_does_not_matter() -> None:
    seconds = [1.0 + 0.015 * step / 399 for step in range(400)]
    assert not is_known_well_enough(seconds, relative_half_width=0.0145, look=1)
    assert is_known_well_enough(seconds, relative_half_width=0.016, look=1)


def test_too_few_steps_for_an_interval_are_not_known_well_enough() -> None:
    assert not is_known_well_enough([1.0] * 20, relative_half_width=0.5, look=1)
