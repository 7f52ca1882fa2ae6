"""PlanRound: the runs that come next, as items of the lanes."""

import json

from tests.unit.lab_in_memory import EXECUTION
from tests.unit.planned_lab import planned
from traindyno.core.suite.runs import parse_run
from traindyno.lab.plan_round import plan_next_round


def test_the_items_of_a_lane_are_runs_in_order_with_the_longest_that_each_may_take() -> None:
    lab = planned(1)
    (lane,) = plan_next_round(EXECUTION, finished_rounds=0, bucket=lab.bucket)["lanes"]
    items = lab.bucket.read_json(lane["items_key"])
    assert [parse_run(item["run"]).trial for item in items] == [1, 1, 2, 2]
    # 7,200 s of waiting, 1,800 s of work, an hour of grace
    assert {item["timeout_seconds"] for item in items} == {7200 + 1800 + 3600}


def test_a_grid_is_measured_in_one_round() -> None:
    lab = planned(1)
    assert plan_next_round(EXECUTION, finished_rounds=1, bucket=lab.bucket)["lanes"] == []


def test_what_is_carried_between_rounds_stays_small() -> None:
    lab = planned(1, measurement={"trials": 20})
    answer = plan_next_round(EXECUTION, finished_rounds=0, bucket=lab.bucket)
    assert len(json.dumps(answer)) < 500
