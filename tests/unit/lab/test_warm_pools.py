"""Instances kept warm between the jobs of an execution: who took them, what they cost, and that they are let go of."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.lab_in_memory import EXECUTION, NOW, SETTINGS, MemoryLab, make_lab, no_sleep
from tests.unit.stubbed import stubbed
from traindyno.aws.training_jobs import TrainingJobs
from traindyno.core.jobs.job_end import WarmPool
from traindyno.lab.finish_run import finish_run
from traindyno.lab.record_run import record_run
from traindyno.lab.submit_run import submit_run
from traindyno.lab.warm_pools import release_warm_pools, settle_pool

KEEP_SECONDS = 600
# 1.20 USD an hour: 1800 s at most, with 480 s to stop and to upload, then 600 s kept warm
LIMITS = {"max_usd": 5, "max_hours": 4, "max_job_seconds": 1320}
OTHERS = WarmPool(
    job_name="traindyno-quick-look-00000000-another-execution", is_over=False, retained_seconds=9, reused_by=None
)


def warm_lab(**changes: Any) -> tuple[MemoryLab, list[Any]]:
    lab, runs = make_lab(limits=LIMITS, warm_pool_seconds=KEEP_SECONDS, **changes)
    return lab, runs


def submit(lab: MemoryLab, run: Any) -> str:
    before = set(lab.jobs.jobs)
    submit_run(run, "token", services=lab.services, settings=SETTINGS, now=NOW, sleep=no_sleep)
    (name,) = set(lab.jobs.jobs) - before
    return name


def end(lab: MemoryLab, name: str, *, keeps_pool: bool = True) -> None:
    lab.jobs.end(name, "Completed", billable_seconds=300)
    if keeps_pool:
        lab.jobs.pools.append(WarmPool(job_name=name, is_over=False, retained_seconds=0, reused_by=None))
    finish_run(name, lab="traindyno", services=lab.services, now=NOW + 400)


def pool_of(lab: MemoryLab, name: str, **changes: Any) -> WarmPool:
    (found,) = [pool for pool in lab.jobs.pools if pool.job_name == name]
    changed = replace(found, **changes)
    lab.jobs.pools = [changed if pool is found else pool for pool in lab.jobs.pools]
    return changed


def release(lab: MemoryLab) -> tuple[WarmPool, ...]:
    return release_warm_pools(EXECUTION, lab="traindyno", services=lab.services, sleep=lambda _: None)


def started_twice() -> tuple[MemoryLab, str, str]:
    """The second job took the instances of the first 30 s after its end."""
    lab, runs = warm_lab()
    first = submit(lab, runs[0])
    end(lab, first)
    second = submit(lab, runs[1])
    pool_of(lab, first, is_over=True, retained_seconds=30.0, reused_by=second)
    end(lab, second)
    return lab, first, second


def test_the_later_job_learns_that_it_started_warm_and_its_run_says_so() -> None:
    lab, first, second = started_twice()
    ends = [lab.attempt(name).end for name in (first, second)]
    assert [each.started_warm for each in ends if each] == [False, True]
    for name in (first, second):
        record_run(lab.run_of(name), final=None, services=lab.services)
    assert [lab.summary(lab.run_of(name).run_id).started_warm for name in (first, second)] == [False, True]


def test_job_of_a_suite_without_warm_pools_lists_none_and_its_start_is_unknown() -> None:
    lab, runs = make_lab(limits=LIMITS)
    lab.jobs.pool_taken_by = None  # type: ignore[assignment, method-assign]
    name = submit(lab, runs[0])
    end(lab, name, keeps_pool=False)
    ended = lab.attempt(name).end
    assert ended is not None
    assert ended.started_warm is None
    assert lab.money.exposed_usd == lab.money.spent_usd == Decimal("0.10")


def test_cost_of_a_pool_stays_reserved_until_its_use_is_known() -> None:
    lab, runs = warm_lab()
    first = submit(lab, runs[0])
    end(lab, first)
    # 300 s were billed, 600 s may be
    assert (lab.money.spent_usd, lab.money.exposed_usd) == (Decimal("0.10"), Decimal("0.30"))
    lab, first, _ = started_twice()
    # 300 s, 30 s and 300 s; the second's own 600 s are still open
    assert (lab.money.spent_usd, lab.money.exposed_usd) == (Decimal("0.21"), Decimal("0.41"))
    assert not settle_pool(pool_of(lab, first), services=lab.services)


def test_instances_that_an_execution_kept_warm_are_released_settled_and_no_others() -> None:
    lab, _, second = started_twice()
    lab.jobs.pools.append(OTHERS)
    pool_of(lab, second, retained_seconds=60.0)
    pools = release(lab)
    assert [(pool.is_over, pool.retained_seconds) for pool in pools] == [(True, 30.0), (True, 60.0)]
    assert OTHERS in lab.jobs.pools
    # 690 s
    assert lab.money.spent_usd == lab.money.exposed_usd == Decimal("0.23")
    release(lab)
    assert lab.money.spent_usd == Decimal("0.23")


def test_a_suite_that_keeps_nothing_warm_asks_for_nothing() -> None:
    lab, _, _ = started_twice()
    lab.plan(warm_pool_seconds=0)
    before = list(lab.jobs.pools)
    assert release(lab) == ()
    assert lab.jobs.pools == before


def test_a_job_that_waits_for_room_finds_the_room_of_pools_that_ended_by_themselves() -> None:
    lab, runs = warm_lab()
    first = submit(lab, runs[0])
    end(lab, first)
    # 5 USD less 0.80 for the next job, less the 0.20 that the pool did not use up
    lab.expose(Decimal("4.30"))
    submit_run(runs[1], "token-2", services=lab.services, settings=SETTINGS, now=NOW, sleep=no_sleep)
    assert lab.answers.given[-1][:2] == ("token-2", "SlotUnavailable")
    pool_of(lab, first, is_over=True, retained_seconds=0.0)
    assert submit(lab, runs[1])


def test_releasing_what_another_job_has_taken_over_is_nothing_to_do() -> None:
    config: dict[str, Any] = {"TrainingJobName": "a", "ResourceConfig": {"KeepAlivePeriodInSeconds": 0}}
    with stubbed("sagemaker") as (client, stubber):
        arn = "arn:aws:sagemaker:us-east-1:111111111111:training-job/a"
        stubber.add_response("update_training_job", {"TrainingJobArn": arn}, config)
        stubber.add_client_error("update_training_job", "ValidationException", "The warm pool is in use")
        assert TrainingJobs(client).release_instances("a")
        assert not TrainingJobs(client).release_instances("a")


@pytest.mark.parametrize(("taken_by", "found"), [("b", True), ("c", False)])
def test_a_job_finds_the_pool_that_it_took_among_those_that_were_reused(taken_by: str, found: bool) -> None:
    pool = {"Status": "Reused", "ResourceRetainedBillableTimeInSeconds": 30, "ReusedByJob": "b"}
    summary = {
        "TrainingJobName": "a",
        "TrainingJobArn": "arn:aws:sagemaker:us-east-1:111111111111:training-job/a",
        "CreationTime": NOW,
        "TrainingJobStatus": "Completed",
        "WarmPoolStatus": pool,
    }
    asked = {"NameContains": "lab-", "WarmPoolStatusEquals": "Reused", "MaxResults": 100}
    with stubbed("sagemaker") as (client, stubber):
        stubber.add_response("list_training_jobs", {"TrainingJobSummaries": [summary]}, asked)
        taken = TrainingJobs(client).pool_taken_by(taken_by, "lab-")
    assert (taken.retained_seconds if taken else None) == (30.0 if found else None)
