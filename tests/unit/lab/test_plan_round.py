"""PlanRound: the runs that come next, as items of the lanes."""

import json
from collections.abc import Mapping

import pytest

from tests.unit.lab_in_memory import EXECUTION
from tests.unit.planned_lab import (
    Carried,
    items_of_round,
    judge_execution,
    measure,
    planned,
    runs_of_item,
)
from tests.unit.run_samples import known
from tests.unit.suites import unprepared_document
from traindyno.core.jobs.job import Job, parse_owner
from traindyno.core.jobs.journal_format import OUTPACED
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.s3_keys import report_html_key
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.runs import round_of, trained_settings
from traindyno.core.verdict.verdict import Finding
from traindyno.figures.in_job.outpaced import Pace, early_end, pace_of
from traindyno.figures.in_job.run_scatter import run_scatter
from traindyno.lab.continue_suite import FIRST_BATCHES
from traindyno.lab.plan_round import plan_next_round

STEPS = 40
SAMPLES = 8
WORK = 1e6


@pytest.mark.parametrize(
    ("jobs", "trials"), [("separate", [(1,), (1,), (2,), (2,)]), ("shared", [(1, 1), (2, 2)])]
)
def test_the_items_of_a_lane_are_in_order_with_the_longest_time_of_each(
    jobs: str, trials: list[tuple[int, ...]]
) -> None:
    lab = planned(1, measurement={"trials": 2, "jobs": jobs})
    items = items_of_round(lab)
    assert [tuple(run.trial for run in runs_of_item(item)) for item in items] == trials
    # 7,200 s of waiting, 1,800 s of work, 300 s of uploading, an hour of grace
    assert {item["timeout_seconds"] for item in items} == {7200 + 1800 + 300 + 3600}


def test_runs_of_different_size_fill_the_quota_in_waves() -> None:
    lab = planned(
        16,
        training={"instance": "ml.g5.xlarge", "precision": "bf16"},
        baseline={},
        matrix={"instance_count": [2, 4, 8, 16]},
        limits={"max_usd": 5000, "max_hours": 4, "max_job_seconds": 1800},
    )
    (lane,) = plan_next_round(EXECUTION, finished_rounds=0, bucket=lab.bucket)["lanes"]
    waves = [
        [runs_of_item(item)[0] for item in lab.bucket.read_json(wave["items_key"])]
        for wave in lane["packs"]
    ]
    # 30 instances x 2 trials = 60 in waves of 16
    assert len(waves) == 4
    assert [wave["concurrency"] for wave in lane["packs"]] == [len(wave) for wave in waves]
    assert all(sum(run.cell.settings.instance_count for run in wave) <= 16 for wave in waves)


def test_a_grid_is_measured_in_one_round() -> None:
    lab = planned(1)
    assert plan_next_round(EXECUTION, finished_rounds=1, bucket=lab.bucket)["lanes"] == []


def test_a_search_begins_with_the_batch_that_was_estimated() -> None:
    """A cell without an estimate begins as its suite says."""
    training = {"instance": "ml.g5.xlarge", "batch_size_per_device": {"search": "largest"}}
    document = unprepared_document(training=training)
    eager, compiled = parse_suite(document).cells
    lab = planned(1, training=training, **{FIRST_BATCHES: {eager.cell_id: 24}})
    runs = [run for item in items_of_round(lab) for run in runs_of_item(item)]
    first = {run.cell.cell_id: trained_settings(run).batch_size for run in runs}
    assert first == {eager.cell_id: 24, compiled.cell_id: 1}
    assert all(run.searches_batch for run in runs)


def test_the_state_carried_between_rounds_stays_small() -> None:
    lab = planned(1, measurement={"trials": 20})
    answer = plan_next_round(EXECUTION, finished_rounds=0, bucket=lab.bucket)
    assert len(json.dumps(answer)) < 500


def carry_race(job: Job, step_seconds: Mapping[int, float]) -> dict[str, Carried]:
    """What the parent of the job does: a run ends when an earlier one of another cell is out of
    reach.
    """
    carried = dict[str, Carried]()
    paces = dict[str, dict[str, Pace]]()
    for run in job.runs:
        batch = known(run.cell.settings.batch_size)
        seconds = tuple(
            step_seconds[batch] * (1 + 0.004 * ((run.trial + step) % 2)) for step in range(STEPS)
        )
        others = (of_cell for cell_id, of_cell in paces.items() if cell_id != run.cell.cell_id)
        earlier = {name: pace for of_cell in others for name, pace in of_cell.items()}
        early = None
        if round_of(run) == "1":
            scatter = run_scatter(run.cell.settings.instance)
            early = early_end(seconds, SAMPLES, earlier, WORK, scatter)
        if early is not None:
            end = {"reason": OUTPACED, "exit_code": None, "bound": early.bound}
            carried[run.run_id] = Carried(step_seconds=seconds[: early.steps], end=end)
            continue
        carried[run.run_id] = Carried(step_seconds=seconds)
        pace = known(pace_of(seconds, SAMPLES))
        paces.setdefault(run.cell.cell_id, {})[run.run_id] = pace
    return carried


def test_a_race_in_shared_jobs_ends_hopeless_runs_and_runs_the_leaders_again() -> None:
    matrix = {"batch_size_per_device": [1, 2, 4, 8], "compiler": ["none"]}
    limits = {"max_usd": 500, "max_hours": 8, "max_job_seconds": 1800}
    lab = planned(4, search="race", measurement={}, matrix=matrix, baseline={}, limits=limits)
    step_seconds = {1: 2.0, 2: 1.5, 4: 0.46, 8: 0.44}
    jobs: list[Job] = []
    while lanes := plan_next_round(EXECUTION, finished_rounds=len(jobs), bucket=lab.bucket)[
        "lanes"
    ]:
        (item,) = lab.bucket.read_json(lanes[0]["packs"][0]["items_key"])
        job = parse_owner(item)
        assert isinstance(job, Job)
        measure(lab, item, host_id=job.job_id, carried=carry_race(job, step_seconds))
        jobs.append(job)
    verdict = judge_execution(lab)
    ran = [[run.cell.settings.batch_size for run in job.runs] for job in jobs]
    assert sorted(ran[0]) == [1, 2, 4, 8]
    assert [sorted(set(batches)) for batches in ran[1:]] == [[4, 8]] * len(ran[1:])
    # forward and backward
    assert [batches[:2] for batches in ran[1:]] == [batches[:1:-1] for batches in ran[1:]]
    assert 2 <= len(jobs) <= 5
    best = next(row for row in verdict.rows if row.cell_id == verdict.recommended)
    assert "8" in best.label
    assert verdict.finding is Finding.RECOMMENDED
    report = lab.bucket.read(report_html_key(EXECUTION)).decode()
    # a run of batch 1 or 2 before the leaders is not outpaced by them, and its cell is dropped
    # after it
    slow = {row.label: row.outcomes for row in verdict.rows if row.label not in {best.label}}
    outpaced = [label for label, outcomes in slow.items() if Outcome.OUTPACED.value in outcomes]
    after = [
        batch
        for batch in ran[0][ran[0].index(next(size for size in ran[0] if size > 2)) :]
        if batch <= 2
    ]
    assert len(outpaced) >= len(after) > 0
    assert "outpaced" in report
