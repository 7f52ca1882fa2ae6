"""Waves: runs of different size fill a lane's instances, trial after trial, in a random order."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tests.properties import examples
from traindyno.core.jobs.job import Job
from traindyno.core.planning.jobs import separate_job
from traindyno.core.planning.lanes import LaneDemand, share_instances
from traindyno.core.planning.waves import Wave, fill_waves, wave_count, wave_size
from traindyno.core.run.settings import Settings
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.runs import trial_runs

QUOTA = 16
# ALBERT on p4d: four cells on each of 2, 4, 8 and 16 nodes, and a fifth on 16
ALBERT = [2, 4, 8, 16] * 4 + [16]


def cells_of(sizes: list[int]) -> list[Cell]:
    return [
        Cell(
            cell_id=f"cell-{n}",
            label=f"cell {n}",
            settings=Settings(instance="ml.p4d.24xlarge", instance_count=size),
        )
        for n, size in enumerate(sizes)
    ]


def runs_of(sizes: list[int], *, trials: int = 3, execution_id: str = "e") -> tuple[Job, ...]:
    return tuple(map(separate_job, trial_runs(execution_id, cells_of(sizes), range(1, trials + 1))))


def size_of(wave: Wave) -> int:
    return sum(job.instance_count for job in wave)


def test_seventeen_cells_of_2_to_16_nodes_take_26_waves() -> None:
    runs = runs_of(ALBERT)
    # 4 x (2 + 4 + 8 + 16) + 16 = 136 nodes x 3 trials = 408; 408 / 16 = 25.5. The two largest
    # together exceed the quota, so that counting runs allows one at a time.
    concurrency = share_instances(
        [LaneDemand(lane_id="a", sizes=tuple(ALBERT * 3), available=16, shares_host=False)], 16
    )
    assert (concurrency.runs, concurrency.instances) == ({"a": 1}, {"a": 16})
    assert wave_count(runs, concurrency=1, instances=None) == 51
    assert wave_size(runs, concurrency=1, instances=QUOTA) == QUOTA
    assert wave_count(runs, concurrency=1, instances=QUOTA) == 26


@examples(60)
@given(st.lists(st.sampled_from([1, 2, 3, 5, 8]), min_size=1, max_size=20))
def test_every_run_comes_once_within_the_quota_and_trials_stay_in_order(sizes: list[int]) -> None:
    runs = runs_of(sizes, trials=4)
    waves = fill_waves(runs, 8)
    assert Counter(job.job_id for wave in waves for job in wave) == Counter(
        job.job_id for job in runs
    )
    assert all(size_of(wave) <= 8 for wave in waves)
    trials = [[job.trial for job in wave] for wave in waves]
    assert all(max(wave) - min(wave) <= 1 for wave in trials)
    assert [min(wave) for wave in trials] == sorted(min(wave) for wave in trials)
    assert all(
        max(earlier) <= min(later) for earlier, later in zip(trials, trials[2:], strict=False)
    )


def test_the_order_of_waves_is_random_and_differs_between_trials() -> None:
    waves = fill_waves(runs_of(ALBERT, trials=6), QUOTA)
    of_largest = [
        wave[0].runs[0].cell.cell_id for wave in waves if size_of(wave) == len(wave) * QUOTA
    ]
    trials = [of_largest[begin : begin + 5] for begin in range(0, 30, 5)]
    assert all(len(set(trial)) == 5 for trial in trials), (
        "each trial has every cell of 16 nodes once"
    )
    assert len({tuple(trial) for trial in trials}) > 3
    others = fill_waves(runs_of(ALBERT, trials=6, execution_id="another"), QUOTA)
    assert [wave[0].job_id for wave in others] != [wave[0].job_id for wave in waves]


def test_neighbours_in_a_wave_differ_between_trials() -> None:
    waves = fill_waves(runs_of([8, 8, 8, 8], trials=8), QUOTA)
    assert len({frozenset(job.runs[0].cell.cell_id for job in wave) for wave in waves}) > 2


def test_runs_of_one_size_are_counted_and_fill_no_waves() -> None:
    assert wave_size(runs_of([4] * 6), concurrency=4, instances=16) is None
    assert wave_count(runs_of([4] * 6), concurrency=4, instances=None) == 5  # 18 runs, four at once


def test_without_a_gain_by_waves_runs_are_counted() -> None:
    # all at once either way
    assert wave_size(runs_of([1, 2], trials=1), concurrency=2, instances=16) is None


def test_lanes_share_the_spare_instances_of_the_account() -> None:
    lanes = [
        LaneDemand(lane_id=name, sizes=(16, 8, 4, 2), available=20, shares_host=False)
        for name in ("a", "b")
    ]
    # 40 in the account: both hold 16 + nothing more by counting runs (16 + 8 = 24 exceeds 20), so
    # that 4 are spare each
    shared = share_instances(lanes, 36)
    assert (shared.lanes, shared.runs, shared.instances) == (
        2,
        {"a": 1, "b": 1},
        {"a": 20, "b": 16},
    )


def test_a_run_larger_than_all_instances_is_a_wave_of_its_own() -> None:
    waves = fill_waves(runs_of([16, 4], trials=1), 8)
    assert sorted(size_of(wave) for wave in waves) == [4, 16]
