"""PlanRound: the runs that come next, as items of the lanes."""

import json

import pytest

from tests.unit.lab_in_memory import EXECUTION, NOW
from tests.unit.planned_lab import measure, planned, runs_of_item
from traindyno.core.s3_keys import report_html_key
from traindyno.core.suite.runs import parse_run
from traindyno.lab.judge_suite import judge_suite
from traindyno.lab.plan_round import plan_next_round


@pytest.mark.parametrize(("jobs", "trials"), [("separate", [(1,), (1,), (2,), (2,)]), ("shared", [(1, 1), (2, 2)])])
def test_the_items_of_a_lane_are_in_order_with_the_longest_that_each_may_take(
    jobs: str, trials: list[tuple[int, ...]]
) -> None:
    lab = planned(1, measurement={"trials": 2, "jobs": jobs})
    (lane,) = plan_next_round(EXECUTION, finished_rounds=0, bucket=lab.bucket)["lanes"]
    items = lab.bucket.read_json(lane["packs"][0]["items_key"])
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
    waves = [[parse_run(item["run"]) for item in lab.bucket.read_json(wave["items_key"])] for wave in lane["packs"]]
    # 30 instances x 2 trials = 60 in waves of 16
    assert len(waves) == 4
    assert [wave["concurrency"] for wave in lane["packs"]] == [len(wave) for wave in waves]
    assert all(sum(run.cell.settings.instance_count for run in wave) <= 16 for wave in waves)


def test_a_grid_is_measured_in_one_round() -> None:
    lab = planned(1)
    assert plan_next_round(EXECUTION, finished_rounds=1, bucket=lab.bucket)["lanes"] == []


def test_what_is_carried_between_rounds_stays_small() -> None:
    lab = planned(1, measurement={"trials": 20})
    answer = plan_next_round(EXECUTION, finished_rounds=0, bucket=lab.bucket)
    assert len(json.dumps(answer)) < 500


def test_a_race_measures_all_cells_once_and_the_leaders_again_until_its_verdict() -> None:
    measurement = {"trials": 5, "jobs": "separate"}
    matrix = {"batch_size_per_device": [1, 2, 4, 8], "compiler": ["none"]}
    lab = planned(4, search="race", measurement=measurement, matrix=matrix, include=[], exclude=[], baseline={})
    step_seconds = {1: 2.0, 2: 1.5, 4: 0.45, 8: 0.44}
    rounds: list[list[int]] = []
    while lanes := plan_next_round(EXECUTION, finished_rounds=len(rounds), bucket=lab.bucket)["lanes"]:
        ran = []
        for item in lab.bucket.read_json(lanes[0]["packs"][0]["items_key"]):
            run = parse_run(item["run"])
            batch = run.cell.settings.batch_size_per_device
            assert batch is not None
            slower = 1 + 0.004 * (run.trial % 2)
            measure(lab, item, host_id=run.run_id, step_seconds=step_seconds[batch] * slower)
            ran.append(batch)
        rounds.append(sorted(ran))
    verdict = judge_suite(EXECUTION, bucket=lab.bucket, executions=lab.executions, facts={}, now=NOW)
    assert rounds[0] == [1, 2, 4, 8]
    assert 2 <= len(rounds) <= 5
    assert [ran for ran in rounds[1:] if ran != [4, 8]] == []
    labels = {row.label for row in verdict.rows if row.trials == 1}
    assert len(labels) == 2
    assert "2 cells were dropped after one run" in lab.bucket.read(report_html_key(EXECUTION)).decode()
