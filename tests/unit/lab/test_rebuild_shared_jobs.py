"""The rows of shared jobs are lost, in whole or in part: no ended run and no bill is lost with them."""

import copy
import random

import pytest

from tests.unit.lab.shared_job_world import FAULT, World
from tests.unit.lab.test_rebuild_books import BILLED_SECONDS, Items, ledger_usd, rebuild
from tests.unit.lab.test_shared_jobs import calm_world, live, result_of
from tests.unit.lab_in_memory import EXECUTION, PRICE
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.planning.plan import plan_suite, stored_plan
from traindyno.core.planning.wave_items import wave_items
from traindyno.core.s3_keys import lane_key, plan_key, suite_key
from traindyno.core.suite.suite_file import read_stored_suite


def told() -> tuple[World, list[Items]]:
    """One run ends in the first attempt, one in the second, and the third attempt is at work when MiniStack ends."""
    world = calm_world(run_count=3)
    lab = world.lab
    suite = lab.bucket.read_as(suite_key(EXECUTION), read_stored_suite)
    plan = plan_suite(suite, execution_id=EXECUTION, prices={PRICE.instance_type: PRICE}, quotas={}, histories={})
    lab.bucket.write_json(plan_key(EXECUTION), stored_plan(plan))
    lab.bucket.write_json(lane_key(EXECUTION, 1, "lane", wave=1), wave_items([world.job], suite.limits))
    saves: list[Items] = [{}]
    for number, ending in enumerate(({"status": "Completed"}, {"status": "Failed", "reason": FAULT}, None)):
        world.start(f"token-{number}")
        saves.append(copy.deepcopy(lab.table.items))
        if ending:
            live(world, 1, **ending, billable_seconds=BILLED_SECONDS)
            saves.append(copy.deepcopy(lab.table.items))
    return world, saves


def check(world: World) -> None:
    """The runs that have ended are results, the third one was stopped, and all three jobs are paid."""
    results = result_of(world)
    assert [results[run.run_id].outcome for run in world.job.runs] == [
        Outcome.COMPLETED,
        Outcome.COMPLETED,
        Outcome.STOPPED_BY_USER,
    ]
    rows = world.lab.attempt_rows
    assert rows.keys() == world.lab.jobs.jobs.keys()
    assert not any(row.is_open for row in rows.values())
    money = world.lab.money
    assert money.exposed_usd == money.spent_usd == ledger_usd(world.lab)
    (kept,) = world.lab.shared_jobs.list_all(EXECUTION)
    assert kept.jobs == rows.keys()


@pytest.mark.parametrize("step", range(6))
def test_whatever_was_saved_last_the_books_are_those_of_the_ledger(step: int) -> None:
    world, saves = told()
    world.lab.table.items = copy.deepcopy(saves[step])
    rebuild(world.lab)
    check(world)


@pytest.mark.parametrize("seed", range(10))
def test_a_save_that_was_torn_in_mid_transaction_costs_nothing(seed: int) -> None:
    draw = random.Random(seed)
    world, saves = told()
    step = draw.randrange(1, len(saves) - 1)
    chosen = {key: draw.choice((saves[step], saves[step + 1])).get(key) for key in sorted(saves[step + 1])}
    world.lab.table.items = {key: item for key, item in chosen.items() if item is not None}
    rebuild(world.lab)
    check(world)
