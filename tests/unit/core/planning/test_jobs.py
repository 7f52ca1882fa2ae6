"""Which runs share a job, in which order, and which have a job of their own."""

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import pytest

from tests.unit.planned_suites import past_cell
from tests.unit.suites import script_document, small_suite
from traindyno.core.errors import SuiteInvalid
from traindyno.core.planning.jobs import group_key, share_jobs, why_alone
from traindyno.core.planning.waves import wave_items
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.runs import make_runs, trial_runs
from traindyno.core.suite.suite import Run, Suite

SHARED = {"trials": 4, "jobs": "shared"}
STATE_BYTES = 256 * 1024
TYPES = ["ml.g5.12xlarge", "ml.g6.12xlarge", "ml.p4d.24xlarge"]
OLD_IMAGE = {"image": "pytorch-training:1.12-gpu-py38"}
UNPACKED = "a tarball that traindyno run has not packed"


def shared_suite(**changes: Any) -> Suite:
    return small_suite(**{"measurement": SHARED, **changes})


def runs_of(suite: Suite, execution_id: str = "e") -> tuple[Run, ...]:
    return trial_runs(execution_id, suite.cells, range(1, suite.measurement.trials + 1))


def random_suite(rng: random.Random) -> Suite:
    matrix = {
        "instance": rng.sample(TYPES, rng.randint(1, 3)),
        "instance_count": rng.sample([1, 2, 3], rng.randint(1, 2)),
        "strategy": rng.sample(["ddp", "fsdp", "zero1"], rng.randint(1, 3)),
        "batch_size_per_device": rng.sample(range(1, 40), rng.randint(1, 9)),
    }
    measurement = {"trials": rng.randint(1, 5), "jobs": "shared"}
    return small_suite(training={}, baseline={}, matrix=matrix, measurement=measurement)


@pytest.mark.parametrize("seed", range(20))
def test_each_run_is_in_one_job_with_runs_agreeing_in_its_fixed_settings(seed: int) -> None:
    suite = random_suite(random.Random(seed))
    runs = runs_of(suite)
    jobs = share_jobs(runs, suite)
    assert Counter(run.run_id for job in jobs for run in job.runs) == Counter(
        run.run_id for run in runs
    )
    assert len({job.job_id for job in jobs}) == len(jobs)
    for job in jobs:
        assert len({(group_key(run.cell, suite), run.block) for run in job.runs}) == 1
        assert {run.job_id for run in job.runs} == ({job.job_id} if job.is_shared else {None})
        # The form of a run's id, for which a job's name has room
        assert re.fullmatch(r"[0-9a-z]{8}-t\d+", job.job_id)
        assert len(job.job_id) <= max(len(run.run_id) for run in job.runs)


@pytest.mark.parametrize("execution_id", ["a", "b", "c"])
def test_the_second_job_of_a_pair_has_the_order_of_the_first_reversed(execution_id: str) -> None:
    suite = shared_suite(matrix={"batch_size_per_device": list(range(1, 9))}, baseline={})
    orders = [
        [run.cell.cell_id for run in job.runs]
        for job in share_jobs(runs_of(suite, execution_id), suite)
    ]
    assert orders[1] == orders[0][::-1]
    assert orders[3] == orders[2][::-1]
    assert orders[0] != orders[2]


@pytest.mark.parametrize("seed", range(5))
def test_the_document_of_a_job_fits_into_a_state_with_room_for_its_end(seed: int) -> None:
    rng = random.Random(seed)
    values = [
        str(number) + "ü" * rng.randint(0, 400) for number in range(rng.randint(2, 300))
    ]  # 6 characters as JSON
    suite = parse_suite(
        script_document(
            matrix={"instance": ["ml.g5.xlarge"], "hyperparameters.text": values},
            measurement={"jobs": "shared"},
        )
    )
    runs = trial_runs("e" * 80, suite.cells, [1])
    jobs = share_jobs(runs, suite)
    assert sorted(run.run_id for job in jobs for run in job.runs) == sorted(
        run.run_id for run in runs
    )
    for job in jobs:
        (item,) = wave_items([job], suite.limits)
        assert not job.is_shared or len(json.dumps(item)) <= 0.85 * STATE_BYTES


def test_no_cell_is_first_more_often_than_chance_has_it() -> None:
    suite = shared_suite(matrix={"batch_size_per_device": [1, 2, 3, 4]}, baseline={})
    firsts = Counter(
        share_jobs(runs_of(suite, str(number)), suite)[0].runs[0].cell.cell_id
        for number in range(400)
    )
    assert len(firsts) == 4
    assert all(
        60 <= count <= 140 for count in firsts.values()
    )  # 100 expected, with a standard deviation of 9


def test_separate_gives_each_run_its_own_job() -> None:
    suite = small_suite(measurement={"trials": 2, "jobs": "separate"})
    jobs = share_jobs(runs_of(suite), suite)
    assert [job.runs for job in jobs] == [(run,) for run in runs_of(suite)]
    assert [job.job_id for job in jobs] == [run.run_id for run in runs_of(suite)]


@pytest.mark.parametrize(
    ("workload", "training", "why"),
    [
        # SageMaker's own launchers
        ({}, {"compiler": "xla"}, "XLA on GPUs"),
        ({"hyperparameters": {"mp_parameters": "{}"}}, {}, "mp_parameters"),
        ({}, {"instance": "ml.p4d.24xlarge", "strategy": "smddp"}, "strategy smddp"),
        # several processes of an image before the launchers knew torchrun
        (OLD_IMAGE, {"strategy": "ddp"}, "mpirun"),
        (OLD_IMAGE, {"strategy": "single"}, None),
        # a tarball without the parent; traindyno run packs a folder
        ({"source": f"s3://results/code/{'0a' * 32}/sourcedir.tar.gz"}, {}, None),
        ({"source": "s3://results/code/execution-1/script/sourcedir.tar.gz"}, {}, None),
        ({"source": "./scripts"}, {}, None),
        ({"source": "s3://mine/code/sourcedir.tar.gz"}, {}, UNPACKED),
        ({"source": "s3://mine/sourcedir.tar.gz"}, {}, UNPACKED),
        ({"source": "s3://results/code/0a1b/sourcedir.tar.gz"}, {}, UNPACKED),
    ],
)
def test_a_script_without_a_start_by_the_parent_stands_alone(
    workload: dict[str, Any], training: dict[str, str], why: str | None
) -> None:
    document = script_document(
        matrix={"hyperparameters.lr": [0.1, 0.2]}, measurement={"jobs": "shared"}
    )
    document["workload"] |= workload
    document["training"] = {"instance": "ml.g5.12xlarge", **training}
    suite = parse_suite(document)
    for cell in suite.cells:
        reason = why_alone(cell, suite)
        assert reason is None if why is None else why in str(reason)


def test_a_run_saving_its_model_stands_alone() -> None:
    suite = shared_suite(measurement={**SHARED, "save_model": True})
    assert all("saves its model" in (why_alone(cell, suite) or "") for cell in suite.cells)
    assert not any(job.is_shared for job in share_jobs(runs_of(suite), suite))


def test_jobs_are_filled_to_half_of_the_limit_by_times_of_earlier_runs() -> None:
    suite = shared_suite(matrix={"batch_size_per_device": list(range(1, 13))}, baseline={})
    cells = suite.cells
    histories = {cell.cell_id: past_cell(cell.cell_id, 300) for cell in cells}
    by_trial: dict[int, list[int]] = defaultdict(list)
    for job in share_jobs(runs_of(suite), suite, histories):
        by_trial[job.trial].append(len(job.runs))
    # 12 runs of 300 s, and half of 1,800 s for each job
    assert dict(by_trial) == {trial: [3, 3, 3, 3] for trial in (1, 2, 3, 4)}


def test_a_repeated_trial_shares_with_the_others_of_its_round() -> None:
    suite = shared_suite()
    first, second = suite.cells
    jobs = share_jobs(make_runs("e", [(first, 5), (second, 6)], round_number=2), suite)
    assert [len(job.runs) for job in jobs] == [2]


def test_a_run_may_not_take_longer_than_its_shared_job() -> None:
    limits = {"max_usd": 50, "max_hours": 4, "max_job_seconds": 1800, "max_run_seconds": 1801}
    with pytest.raises(SuiteInvalid, match="max_run_seconds"):
        shared_suite(limits=limits)


def test_a_further_job_of_a_race_runs_its_cells_forward_and_backward() -> None:
    suite = shared_suite(search="race", matrix={"batch_size_per_device": [1, 2, 3, 4]}, baseline={})
    cells = suite.cells
    (first,) = share_jobs(trial_runs("e", cells, [1]), suite)
    (further,) = share_jobs(
        make_runs("e", [(cell, trial) for cell in cells for trial in (2, 3)], round_number=2), suite
    )
    order = [run.cell.cell_id for run in further.runs]
    assert len(set(order[:4])) == 4
    assert order[4:] == order[3::-1]
    assert [run.cell.cell_id for run in first.runs] == order[4:]
    assert {run.trial for run in further.runs[:4]} == {2}


@pytest.mark.parametrize(("search", "is_first"), [("race", True), ("grid", False)])
def test_a_race_begins_with_the_baseline_of_the_suite(search: str, is_first: bool) -> None:
    """It is measured in full, and each slow cell is ended early; the order of the others is
    drawn.
    """
    suite = with_baseline(search)
    baseline = suite.baseline_cell
    cells = suite.cells
    orders = [order_of(str(number), cells, [1], 1, suite) for number in range(30)]
    assert all(order[0] == baseline.cell_id for order in orders) is is_first
    assert len({order[1] for order in orders}) >= 3


def test_the_job_after_the_first_one_has_its_order_reversed_also_with_a_baseline() -> None:
    """Else the baseline alone would have the first place of each job, and what that place does to
    its runs.
    """
    suite = with_baseline("race")
    cells = suite.cells
    for number in range(30):
        first = order_of(str(number), cells, [1], 1, suite)
        assert order_of(str(number), cells, [2], 2, suite) == first[::-1]
        assert order_of(str(number), cells, [2, 3], 2, suite) == [*first[::-1], *first]


def test_later_jobs_of_a_race_have_the_baseline_at_its_drawn_place() -> None:
    suite = with_baseline("race")
    baseline = suite.baseline_cell
    cells = suite.cells
    places = {
        order_of(str(number), cells, [3], 3, suite).index(baseline.cell_id) for number in range(60)
    }
    assert places == set(range(len(cells)))


@pytest.mark.parametrize("search", ["race", "grid"])
def test_a_repeat_has_the_order_of_its_replaced_trial(search: str) -> None:
    suite = with_baseline(search)
    cells = suite.cells
    trials = suite.measurement.trials
    for number in range(10):
        for trial in (1, 2):
            repeat = order_of(str(number), cells, [trial + trials], 2, suite)
            assert repeat == order_of(str(number), cells, [trial], 1, suite)


def with_baseline(search: str) -> Suite:
    return shared_suite(
        search=search,
        matrix={"batch_size_per_device": [1, 2, 3, 4]},
        baseline={"batch_size_per_device": 3},
        measurement={"trials": 9},
    )


def order_of(
    execution_id: str, cells: Sequence[Cell], trials: Sequence[int], round_number: int, suite: Suite
) -> list[str]:
    wanted = [(cell, trial) for cell in cells for trial in trials]
    (job,) = share_jobs(make_runs(execution_id, wanted, round_number=round_number), suite)
    return [run.cell.cell_id for run in job.runs]
