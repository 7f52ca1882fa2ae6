from math import exp, log

import pytest

from traindyno.core.measurement.stalls import (
    Events,
    Stall,
    classify_phases,
    classify_stalls,
    find_stalls,
    log_levels,
)


def stalls_at(*places: int, seconds: float = 5.0) -> list[Stall]:
    return [Stall(first=place, last=place, seconds=seconds) for place in places]


def saved_at(
    *places: int, name: str = "save", count: int = 200, after: tuple[str, ...] = ()
) -> Events:
    return classify_phases(
        {place: {name: 6.0} for place in places}, count=count, names_after_steps=after
    )


def test_a_phase_on_a_schedule_recurs_at_its_period_and_not_at_its_count() -> None:
    (event,) = saved_at(50, 100, 150, count=199).recurring
    # 3 x 6 s in 199 steps are 0.09 s a step; one each 50 steps is 6 / 50
    assert (event.name, event.count, event.steps_between) == ("save", 3, 50)
    assert event.seconds_per_step == pytest.approx(0.12)


def test_phases_without_a_schedule_recur_at_their_count() -> None:
    (event,) = saved_at(10, 100, 120).recurring
    assert event.steps_between == pytest.approx(200 / 3)


@pytest.mark.parametrize(
    ("place", "count", "recurs"), [(120, 200, True), (80, 200, False), (100, 200, False)]
)
def test_a_single_phase_recurs_if_it_came_no_sooner_than_half_of_the_steps(
    place: int, count: int, recurs: bool
) -> None:
    events = saved_at(place, count=count)
    # one says nothing of the spread
    assert [event.variance_per_step for event in events.recurring] == [0.0] * recurs
    assert [stall.first for stall in events.single] == [place] * (not recurs)
    assert events.one_time == ()


@pytest.mark.parametrize(
    "places", [(1, 2, 3), (990, 995, 999), (1, 2), (998, 999), (400, 420, 440, 460)]
)
def test_phases_in_a_part_of_the_run_count_as_often_as_seen(places: tuple[int, ...]) -> None:
    (event,) = saved_at(*places, count=1_000).recurring
    assert event.steps_between == 1_000 / len(places)


def test_a_phase_after_the_last_step_confirms_the_schedule() -> None:
    (event,) = saved_at(100, count=200, after=("save",)).recurring
    assert event.steps_between == 100


def test_compilations_happen_once_however_often_they_are_logged() -> None:
    events = saved_at(3, 40, 90, name="compile")
    assert events.recurring == ()
    assert [event.step for event in events.one_time] == [3, 40, 90]


def test_stalls_recur_as_often_as_they_were_seen() -> None:
    (event,) = classify_stalls(stalls_at(20, 35, 90, 190), count=200).recurring
    assert event.steps_between == 50
    # a compound Poisson process: 4 x 5 s squared ÷ 200 steps squared
    assert event.variance_per_step == pytest.approx(4 * 25 / 200**2)


def test_stalls_at_equal_distances_come_at_their_period() -> None:
    # the window begins at step 10; 4 in 199 steps would be one each 49.75
    (event,) = classify_stalls(stalls_at(50, 99, 150, 200), count=199, first=10).recurring
    assert (event.count, event.steps_between, event.longest_seconds) == (4, 50, 5.0)
    assert event.variance_per_step == 0


def test_a_long_stall_among_short_ones_is_judged_by_itself() -> None:
    stalls = [*stalls_at(40, 80, 120), *stalls_at(60, seconds=90.0)]
    stalled = classify_stalls(stalls, count=150)
    assert [event.steps_between for event in stalled.recurring] == [40]
    assert [stall.first for stall in stalled.single] == [60]


def test_stalled_steps_next_to_each_other_are_one_stall() -> None:
    seconds = [1.0] * 20 + [4.0, 3.0] + [1.0] * 20
    (stall,) = find_stalls(seconds, log_levels(seconds))
    assert (stall.first, stall.last) == (20, 21)
    # 3 s and 2 s beyond the steps around them
    assert stall.seconds == pytest.approx(5.0)


def test_a_step_longer_by_a_fifth_is_no_stall() -> None:
    seconds = [1.0] * 20 + [1.2] + [1.0] * 20
    assert find_stalls(seconds, log_levels(seconds)) == ()


def test_a_phase_is_on_a_schedule_within_a_tenth_of_its_period() -> None:
    # gaps of 110, 90 and 100; three events alone would need them within 1.5 steps
    (even,) = saved_at(100, 210, 300, 400, count=500).recurring
    assert even.steps_between == 100
    (uneven,) = saved_at(100, 211, 300, 400, count=500).recurring
    assert uneven.steps_between == 125
    (three,) = saved_at(100, 210, 300, count=390).recurring
    assert three.steps_between == 130


@pytest.mark.parametrize(("last", "steps_between"), [(53, 21.5), (54, 70 / 3)])
def test_three_of_a_kind_may_be_off_by_a_step_and_a_half(last: int, steps_between: float) -> None:
    # gaps of 20 and 23 are 1.5 from their mean, 20 and 24 are 2
    (event,) = saved_at(10, 30, last, count=70).recurring
    assert event.steps_between == pytest.approx(steps_between)


def test_the_spread_of_recurring_phases_is_for_their_mean_by_steps() -> None:
    (event,) = classify_phases({40: {"save": 4.0}, 80: {"save": 8.0}}, count=120).recurring
    # variance 8 of two, in 40 steps
    assert event.seconds == 6
    assert event.variance_per_step == pytest.approx(8 / 2 / 40**2)


@pytest.mark.parametrize(("longer", "is_one_cause"), [(15.0, True), (15.1, False)])
def test_stalls_of_one_cause_differ_by_a_factor_of_three_at_most(
    longer: float, is_one_cause: bool
) -> None:
    stalled = classify_stalls([*stalls_at(30), *stalls_at(41, seconds=longer)], count=100)
    assert bool(stalled.recurring) is is_one_cause
    assert len(stalled.single) == (0 if is_one_cause else 2)


def test_a_stall_is_the_time_beyond_its_neighbours_level() -> None:
    # seven slow steps are a stall, of eight among fifteen the slow ones are the level
    for slow, expected in ((7, [(20, 26)]), (8, [])):
        seconds = [1.0] * 20 + [2.0] * slow + [1.0] * 20
        stalls = find_stalls(seconds, log_levels(seconds))
        assert [(stall.first, stall.last) for stall in stalls] == expected
        assert sum(stall.seconds for stall in stalls) == pytest.approx(7.0 if expected else 0.0)


def test_stalls_with_a_step_between_them_are_two() -> None:
    seconds = [1.0] * 20 + [4.0, 1.0, 3.0] + [1.0] * 20
    stalls = find_stalls(seconds, log_levels(seconds))
    assert [(stall.first, stall.last, round(stall.seconds, 6)) for stall in stalls] == [
        (20, 20, 3.0),
        (22, 22, 2.0),
    ]


@pytest.mark.parametrize(("deviations", "is_stall"), [(5.8, False), (6.2, True)])
def test_a_stall_exceeds_the_noise_six_times(deviations: float, is_stall: bool) -> None:
    # levels of -0.1, -0.05, 0, 0.05 and 0.1 in turns: the median distance is 0.05, the deviation
    # 0.05 x 1.4826
    logs = [0.05 * (index * 2 % 5 - 2) for index in range(60)]
    logs[30] = deviations * 0.05 * 1.4826
    seconds = [exp(value) for value in logs]
    levels = log_levels(seconds)
    assert (levels[30] != pytest.approx(logs[30])) is is_stall
    assert bool(find_stalls(seconds, levels)) is is_stall


def test_steps_shorter_than_the_clocks_tick_have_a_level() -> None:
    assert log_levels([0.0] * 5) == [log(1e-9)] * 5
