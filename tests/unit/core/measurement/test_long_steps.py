"""Long steps are grouped by length, within a run and over runs."""

import random

import pytest

from traindyno.core.measurement.long_steps import LongSteps, group_long_steps, join_alike
from traindyno.core.measurement.step_time import measure_step_time


def test_lengths_of_which_one_is_over_three_times_the_next_are_of_two_causes() -> None:
    short, long = group_long_steps([2.0, 40.0, 0.0, 0.7, 4.0, -1.0, 30.0])
    assert _plain(short) == pytest.approx((3, 6.7, 0.7, 4.0))
    assert _plain(long) == (2, 70.0, 30.0, 40.0)
    assert long.beyond_mean == 5.0
    assert [each.beyond_mean for each in group_long_steps([8.0])] == [0.0]


@pytest.mark.parametrize("seed", range(20))
def test_groups_of_runs_are_those_of_all_their_steps(seed: int) -> None:
    source = random.Random(seed)
    runs = [[source.paretovariate(0.4) for _ in range(source.randrange(12))] for _ in range(5)]
    joined = join_alike(group for run in runs for group in group_long_steps(run))
    at_once = group_long_steps([each for run in runs for each in run])
    assert [_plain(each) for each in joined] == [pytest.approx(_plain(each)) for each in at_once]


def test_only_steps_that_stall_after_the_warm_up_are_long() -> None:
    source = random.Random(3)
    quiet = [source.lognormvariate(0, 0.1) for _ in range(400)]
    assert measure_step_time(quiet).long_steps == ()
    stalled = [seconds + 8.0 * (step in (5, 150, 300)) for step, seconds in enumerate(quiet)]
    (found,) = measure_step_time(stalled).long_steps
    assert found.count == 2
    assert found.seconds == pytest.approx(16.0, abs=1.0)


def _plain(group: LongSteps) -> tuple[float, ...]:
    return group.count, group.seconds, group.shortest, group.longest
