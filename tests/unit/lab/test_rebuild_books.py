"""The rows of a lab are lost, in whole or in part, and written again from its jobs: the books are as if nothing was."""

import copy
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.lab_in_memory import EXECUTION, NOW, PRICE, SETTINGS, MemoryExecutions, MemoryLab, make_lab, no_sleep
from traindyno.core.costs.prices import cost_usd
from traindyno.core.jobs.job import AttemptOwner
from traindyno.core.jobs.job_end import WarmPool
from traindyno.core.planning.jobs import separate_job
from traindyno.core.planning.plan import plan_suite, stored_plan
from traindyno.core.planning.preparation_plan import due_preparations
from traindyno.core.planning.wave_items import wave_items
from traindyno.core.s3_keys import lane_key, plan_key, result_key, suite_key
from traindyno.core.suite.preparation import REMOTE_INSTANCE, DataPreparation
from traindyno.core.suite.suite import Run
from traindyno.core.suite.suite_file import read_stored_suite
from traindyno.lab.finish_run import finish_run
from traindyno.lab.rebuild_books import Rebuilt, rebuild_books
from traindyno.lab.record_run import record_run
from traindyno.lab.submit_run import submit_run

LIMITS = {"max_usd": 50, "max_hours": 4, "max_job_seconds": 1800, "max_attempts": 3}
BILLED_SECONDS = 300
PRICES = {name: replace(PRICE, instance_type=name) for name in (PRICE.instance_type, REMOTE_INSTANCE)}
Items = dict[tuple[str, str], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Story:
    """A lab, and the items of its table after each of its writes."""

    lab: MemoryLab
    saves: list[Items]


def told(**changes: Any) -> Story:
    """The data is prepared, one run completes at its second attempt, one at its first, and a third one is at work."""
    lab, runs = make_lab(limits=LIMITS, **changes)
    lab.plan(prices=PRICES)
    (preparation,) = keep_documents(lab, runs)
    saves: list[Items] = [{}]

    def note() -> None:
        saves.append(copy.deepcopy(lab.table.items))

    note()
    prepared = submit(lab, preparation, "token-9")
    note()
    lab.jobs.end(prepared, "Failed", reason="AlgorithmError: no such column")
    finish_run(prepared, lab="traindyno", services=lab.services, now=NOW + 400)
    note()
    for number, run in enumerate((runs[0], runs[0], runs[1], runs[2])):
        name = submit(lab, run, f"token-{number}")
        note()
        if number == 3:
            break
        lab.jobs.end(name, "Failed" if number == 0 else "Completed", reason="InternalServerError: try again")
        keep_warm(lab, name)
        finish_run(name, lab="traindyno", services=lab.services, now=NOW + 400)
        note()
        if number:
            record_run(run, final=None, services=lab.services)
            note()
    return Story(lab, saves)


def keep_warm(lab: MemoryLab, job_name: str) -> None:
    """The job leaves its instances warm, if its suite asks for it."""
    if "KeepAlivePeriodInSeconds" in lab.jobs.jobs[job_name]["ResourceConfig"]:
        lab.jobs.pools.append(WarmPool(job_name=job_name, is_over=False, retained_seconds=20, reused_by=None))


def keep_documents(lab: MemoryLab, runs: list[Run]) -> tuple[DataPreparation, ...]:
    """What PlanSuite and PlanRound leave in the bucket; the preparations of the plan."""
    suite = lab.bucket.read_as(suite_key(EXECUTION), read_stored_suite)
    plan = plan_suite(suite, execution_id=EXECUTION, prices=PRICES, quotas={}, histories={})
    lab.bucket.write_json(plan_key(EXECUTION), stored_plan(plan))
    lab.bucket.write_json(lane_key(EXECUTION, 1, "lane", wave=1), wave_items(map(separate_job, runs), suite.limits))
    return due_preparations(plan.preparation, EXECUTION)


def submit(lab: MemoryLab, run: AttemptOwner, token: str) -> str:
    before = set(lab.jobs.jobs)
    submit_run(run, token, services=lab.services, settings=SETTINGS, now=NOW, sleep=no_sleep)
    (name,) = set(lab.jobs.jobs) - before
    return name


def rebuild(lab: MemoryLab, sleep: Callable[[float], None] | None = None) -> Rebuilt:
    """After the end of MiniStack: its executions have failed, no task waits, and jobs end when they are stopped."""
    lab.answers.gone = {f"token-{number}" for number in range(10)} | {"its-task-has-ended"}
    executions = MemoryExecutions()
    executions.start(EXECUTION, {})
    executions.end(EXECUTION, "FAILED", error="States.ServiceRestart")

    def end_stopped(_: float) -> None:
        for name in lab.jobs.stopped:
            if lab.jobs.jobs[name]["TrainingJobStatus"] == "Stopping":
                lab.jobs.end(name, "Stopped", billable_seconds=BILLED_SECONDS)
                keep_warm(lab, name)

    return rebuild_books(
        lab="traindyno", services=lab.services, executions=executions, now=lambda: NOW, sleep=sleep or end_stopped
    )


def ledger_usd(lab: MemoryLab) -> Decimal:
    """What SageMaker billed, by its own jobs and pools."""
    seconds = sum(job.get("BillableTimeInSeconds", 0) for job in lab.jobs.jobs.values())
    return cost_usd(seconds + sum(pool.retained_seconds for pool in lab.jobs.pools), 1, PRICE.usd_per_hour)


def check(lab: MemoryLab) -> None:
    assert lab.attempt_rows.keys() == lab.jobs.jobs.keys()
    assert {row.is_open for row in lab.attempt_rows.values()} == {False}
    money = lab.money
    assert abs(money.spent_usd - ledger_usd(lab)) <= Decimal("0.00001")
    assert (money.exposed_usd, money.pools) == (money.spent_usd, frozenset())
    owners = (*lab.run_rows.values(), *lab.preparations.list_all(EXECUTION))
    named = [job for row in owners for job in row.jobs]
    assert sorted(named) == sorted(lab.jobs.jobs)


STEPS = range(len(told().saves))


@pytest.mark.parametrize("warm_pool_seconds", [0, 600])
@pytest.mark.parametrize("step", STEPS)
def test_whatever_was_saved_last_the_books_are_those_of_the_ledger(step: int, warm_pool_seconds: int) -> None:
    story = told(warm_pool_seconds=warm_pool_seconds)
    story.lab.table.items = copy.deepcopy(story.saves[step])
    rebuilt = rebuild(story.lab)
    check(story.lab)
    lost = sum(each not in story.saves[step] for each in story.saves[-1] if each[1] == "attempt")
    assert dict(rebuilt.attempts) == ({EXECUTION: lost} if lost else {})
    assert (rebuilt.unclaimed, rebuilt.stopping) == ((), ())


@pytest.mark.parametrize("seed", range(25))
def test_a_save_that_was_torn_in_mid_transaction_costs_nothing(seed: int) -> None:
    """Items are read one after another while functions write: some of a save are older than others."""
    draw = random.Random(seed)
    story = told(warm_pool_seconds=draw.choice((0, 600)))
    step = draw.randrange(1, len(story.saves) - 1)
    older, newer = story.saves[step], story.saves[step + 1]
    chosen = {key: draw.choice((older, newer)).get(key) for key in sorted(newer)}
    story.lab.table.items = {key: item for key, item in chosen.items() if item is not None}
    rebuild(story.lab)
    check(story.lab)


def test_a_pool_that_was_released_before_its_job_is_recorded_again_still_costs() -> None:
    """A released job is described with a keep-alive period of zero."""
    lab = told(warm_pool_seconds=600).lab
    rebuild(lab)
    for job in lab.jobs.jobs.values():
        job["ResourceConfig"] = {**job["ResourceConfig"], "KeepAlivePeriodInSeconds": 0}
    lab.table.items = {}
    rebuild(lab)
    assert len(lab.jobs.pools) == len(lab.jobs.jobs) - 1  # the preparation keeps none
    check(lab)


def test_a_run_whose_rows_were_lost_keeps_the_outcome_of_its_last_attempt() -> None:
    story = told()
    lab = story.lab
    lab.table.items = story.saves[1]
    for key in [key for key in lab.objects.contents if key.startswith(result_key(EXECUTION, ""))]:
        lab.objects.delete(key)
    rebuild(lab)
    outcomes = {row.owner_id: str(row.summary.outcome) for row in lab.run_rows.values() if row.summary}
    # Two of them completed, and nothing was logged, which is an error of the script.
    assert sorted(outcomes.values()) == ["stopped_by_user", "user_code_error", "user_code_error"]


def test_rebuilding_again_changes_nothing() -> None:
    lab = told().lab
    lab.table.items = {}
    rebuild(lab)
    before = copy.deepcopy(lab.table.items)
    assert rebuild(lab) == Rebuilt(attempts={}, unclaimed=(), stopping=())
    assert lab.table.items == before


def test_a_job_that_does_not_end_in_time_is_named_and_its_attempt_waits_for_its_end() -> None:
    story = told()
    rebuilt = rebuild(story.lab, sleep=lambda _: None)
    (name,) = rebuilt.stopping
    assert story.lab.attempt(name).is_open
    assert story.lab.money.exposed_usd > story.lab.money.spent_usd
    story.lab.jobs.end(name, "Stopped", billable_seconds=BILLED_SECONDS)
    finish_run(name, lab="traindyno", services=story.lab.services, now=NOW)
    check(story.lab)


def test_an_attempt_whose_job_was_never_created_is_closed_at_once() -> None:
    """The function that would have created it has ended: its reservation must not wait for ten minutes."""
    story = told()
    (name,) = (name for name, job in story.lab.jobs.jobs.items() if job["TrainingJobStatus"] == "InProgress")
    del story.lab.jobs.jobs[name]
    rebuild(story.lab)
    assert not story.lab.attempt(name).is_open
    assert story.lab.money.exposed_usd == story.lab.money.spent_usd


def test_jobs_without_documents_are_stopped_and_named_if_they_run() -> None:
    lab = told().lab
    lab.table.items, lab.objects.contents = {}, {}
    working = [name for name, job in lab.jobs.jobs.items() if job["TrainingJobStatus"] == "InProgress"]
    rebuilt = rebuild(lab)
    assert list(rebuilt.unclaimed) == lab.jobs.stopped == working
    assert lab.attempt_rows == {}


def test_the_row_of_the_execution_is_written_again_from_its_documents() -> None:
    lab = told().lab
    before = lab.executions.find(EXECUTION)
    lab.table.items = {}
    rebuild(lab)
    after = lab.executions.find(EXECUTION)
    assert before is not None
    assert after is not None
    assert (after.max_usd, after.prices, after.goal) == (before.max_usd, before.prices, before.goal)
    assert after.is_stopping
