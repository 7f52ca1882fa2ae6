import pytest

from traindyno.core.measurement.recurrence import STALL, Events, classify_phases, classify_stalls
from traindyno.core.measurement.stalls import Stall, find_stalls, log_levels


def stalls_at(*places: int, seconds: float = 5.0) -> list[Stall]:
    return [Stall(first=place, last=place, seconds=seconds) for place in places]


def saved_at(*places: int, name: str = "save", count: int = 200, after: tuple[str, ...] = ()) -> Events:
    return classify_phases({place: {name: 6.0} for place in places}, count=count, names_after_steps=after)


def test_a_phase_on_a_schedule_recurs_at_its_period_and_not_at_its_count() -> None:
    (event,) = saved_at(50, 100, 150, count=199).recurring
    # 3 x 6 s in 199 steps are 0.09 s a step; one each 50 steps is 6 / 50
    assert (event.name, event.count, event.steps_between) == ("save", 3, 50)
    assert event.seconds_per_step == pytest.approx(0.12)


def test_phases_without_a_schedule_recur_at_their_count() -> None:
    (event,) = saved_at(10, 100, 120).recurring
    assert event.steps_between == pytest.approx(200 / 3)


@pytest.mark.parametrize(("place", "count", "recurs"), [(120, 200, True), (80, 200, False), (100, 200, False)])
def test_a_single_phase_recurs_if_it_came_no_sooner_than_half_of_the_steps(
    place: int, count: int, recurs: bool
) -> None:
    events = saved_at(place, count=count)
    assert bool(events.recurring) is recurs
    assert bool(events.one_time) is not recurs


def test_a_phase_after_the_last_step_confirms_the_schedule() -> None:
    (event,) = saved_at(100, count=200, after=("save",)).recurring
    assert event.steps_between == 100


def test_compilations_happen_once_however_often_they_are_logged() -> None:
    events = saved_at(3, 40, 90, name="compile")
    assert events.recurring == ()
    assert [event.step for event in events.one_time] == [3, 40, 90]


def test_evenly_spaced_stalls_recur_at_their_period() -> None:
    (event,) = classify_stalls(stalls_at(40, 80, 120), first=1, count=150).recurring
    assert (event.name, event.steps_between, event.variance_per_step) == (STALL, 40, 0)


def test_uneven_stalls_up_to_the_end_recur_at_random() -> None:
    (event,) = classify_stalls(stalls_at(20, 35, 90, 190), first=0, count=200).recurring
    assert event.steps_between == 50
    # a compound Poisson process: 4 x 5 s squared ÷ 200 steps squared
    assert event.variance_per_step == pytest.approx(4 * 25 / 200**2)


def test_stalls_whose_cause_has_ceased_happened_once() -> None:
    # (9 / 100)^3 = 0.0007
    events = classify_stalls(stalls_at(2, 5, 8), first=0, count=100)
    assert [event.step for event in events.one_time] == [2, 5, 8]
    # (5 / 100)^1 = 0.05 is not below 5 %
    assert classify_stalls(stalls_at(4), first=0, count=100).unexplained
    assert classify_stalls(stalls_at(3), first=0, count=100).one_time


def test_three_stalls_in_the_first_third_are_unexplained() -> None:
    # (30 / 100)^3 = 0.027 lies between 0.1 and 5 %
    events = classify_stalls(stalls_at(2, 9, 29), first=0, count=100)
    assert len(events.unexplained) == 3
    assert events.recurring == ()


def test_a_long_stall_among_short_ones_is_judged_by_itself() -> None:
    stalls = [*stalls_at(40, 80, 120), *stalls_at(60, seconds=90.0)]
    events = classify_stalls(stalls, first=1, count=150)
    assert [event.steps_between for event in events.recurring] == [40]
    assert [event.step for event in events.unexplained] == [60]


def test_stalled_steps_next_to_each_other_are_one_stall() -> None:
    seconds = [1.0] * 20 + [4.0, 3.0] + [1.0] * 20
    (stall,) = find_stalls(seconds, log_levels(seconds))
    assert (stall.first, stall.last) == (20, 21)
    # 3 s and 2 s beyond the steps around them
    assert stall.seconds == pytest.approx(5.0)


def test_a_step_that_is_a_fifth_longer_is_no_stall() -> None:
    seconds = [1.0] * 20 + [1.2] + [1.0] * 20
    assert find_stalls(seconds, log_levels(seconds)) == ()
