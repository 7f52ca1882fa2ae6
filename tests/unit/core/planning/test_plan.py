"""Plans: exposure, waves, refusals and the requests that lift them."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.sentences import Snapshot
from tests.unit.planned_suites import price, prices_of
from tests.unit.suites import unprepared_suite
from traindyno.core.costs.prices import Price, cost_usd
from traindyno.core.planning.plan import Plan, plan_again, plan_suite
from traindyno.core.planning.quotas import QuotaReading, instance_quota, needed_quotas
from traindyno.core.suite.choices import Purchase
from traindyno.core.suite.suite import Suite
from traindyno.figures.hosts import HostClass, HostSpread

LIMITS = {"max_usd": 50, "max_hours": 4, "max_job_seconds": 1800, "max_attempts": 3}
# 480 s for the image, 840 s, 120 s to stop, 300 s to upload and 60 s of margin: half an hour is
# billed at most
HALF_AN_HOUR = {**LIMITS, "max_job_seconds": 840}
LISTED = prices_of({"ml.g5.xlarge": "1.408"})
LONE_RUNS = {"trials": 2, "jobs": "separate"}


def readings(suite: Suite, **applied: int) -> dict[str, QuotaReading]:
    """AWS's defaults, but for the types and words given."""
    by_name = {}
    for quota in needed_quotas(suite):
        value = next(
            (value for word, value in applied.items() if word.replace("_", " ") in quota.name), None
        )
        by_name[quota.name] = QuotaReading(
            quota=quota, applied=value, default=quota.default, in_use=0
        )
    return by_name


def plan(suite: Suite, *prices: Price, **applied: int) -> Plan:
    listed = {one.instance_type: one for one in prices}
    return plan_suite(
        suite,
        execution_id="execution-1",
        prices=listed or LISTED,
        quotas=readings(suite, **applied),
        histories={},
    )


def plan_with_quotas(suite: Suite, *prices: Price, usage: int = 100) -> Plan:
    return plan(suite, *prices, usage=usage, across_all=100)


def test_exposure_by_hand() -> None:
    suite = unprepared_suite(limits=HALF_AN_HOUR, measurement=LONE_RUNS)
    planned = plan_with_quotas(suite)
    # 2 cells x 2 trials = 4 runs of half an hour at 1.408: 2.816 for one attempt each, three
    # attempts 8.448
    assert planned.run_count == 4
    assert planned.one_attempt_usd == Decimal("2.816")
    assert planned.worst_case_usd == Decimal("8.448")
    # all four at once: 840 s; at worst 3 x (840 + 7200) s = 6.7 h
    assert (planned.lanes[0].concurrency, planned.lanes[0].waves) == (4, 1)
    assert planned.one_attempt_hours == Decimal(840) / 3600
    assert planned.worst_case_hours == Decimal("6.7")
    assert planned.refusals == ()


def test_exposure_of_shared_jobs_by_hand() -> None:
    planned = plan_with_quotas(unprepared_suite(limits=HALF_AN_HOUR))
    # 2 cells x 2 trials = 4 runs in 2 jobs of half an hour at 1.408; at worst three attempts each,
    # and one more for the second run: 2 x 4 x 0.704
    assert (planned.run_count, planned.lanes[0].job_count) == (4, 2)
    assert (planned.one_attempt_usd, planned.worst_case_usd) == (Decimal("1.408"), Decimal("5.632"))
    # both at once: 840 s; at worst 4 x (840 + 7200) s
    assert (planned.lanes[0].concurrency, planned.lanes[0].waves) == (2, 1)
    assert planned.one_attempt_hours == Decimal(840) / 3600
    assert planned.worst_case_hours == Decimal(4 * 8040) / 3600


def test_cost_is_exact_to_the_last_digit() -> None:
    # 1 s on 3 instances at 25.251286 USD/h
    assert cost_usd(1, 3, Decimal("25.251286")) == Decimal("75.753858") / 3600


def test_waves_follow_from_the_quota() -> None:
    suite = unprepared_suite(limits=LIMITS, measurement=LONE_RUNS)
    planned = plan_with_quotas(suite, usage=3)
    assert (planned.lanes[0].concurrency, planned.lanes[0].waves, planned.one_attempt_hours) == (
        3,
        2,
        Decimal(1),
    )


def test_planning_again_with_quotas_keeps_prices_and_the_history_of_runs() -> None:
    suite = unprepared_suite(limits=LIMITS, measurement=LONE_RUNS)
    priced = replace(
        plan_suite(suite, execution_id="e", prices=LISTED, quotas={}, histories={}),
        host_priors={
            HostClass.ONE_HOST: HostSpread(
                deviation=0.02, typical=0.02, degrees_of_freedom=5, source="test"
            )
        },
    )
    again = plan_again(suite, priced, readings(suite, usage=3, across_all=100))
    kept = ("execution_id", "cells", "one_attempt_usd", "host_priors")
    assert [getattr(again, name) for name in kept] == [getattr(priced, name) for name in kept]
    # an unknown quota starts one run at a time
    assert [planned.lanes[0].concurrency for planned in (priced, again)] == [1, 3]


def test_plan_leaves_out_the_instances_in_use_by_others(snapshot: Snapshot) -> None:
    suite = unprepared_suite(limits=LIMITS)
    quota = instance_quota("ml.g5.xlarge", Purchase.ON_DEMAND)
    quotas = {
        **readings(suite, usage=100, across_all=100),
        quota.name: QuotaReading(quota=quota, applied=5, default=0, in_use=3),
    }
    planned = plan_suite(suite, execution_id="e", prices=LISTED, quotas=quotas, histories={})
    assert planned.lanes[0].concurrency == 2
    full = {**quotas, quota.name: QuotaReading(quota=quota, applied=5, default=0, in_use=5)}
    waiting = plan_suite(suite, execution_id="e", prices=LISTED, quotas=full, histories={})
    assert waiting.refusals == ()
    snapshot(waiting.notes)


def test_a_new_account_gets_every_refusal_with_its_request(snapshot: Snapshot) -> None:
    suite = unprepared_suite(
        training={"instance": "ml.p4d.24xlarge", "instance_count": 32},
        limits={"max_usd": 100000, "max_hours": 200, "max_job_seconds": 500000},
    )
    planned = plan(suite, price("ml.p4d.24xlarge", "1"))
    snapshot(
        [refusal.partition(" of quota ")[2].partition(" (AWS's")[0] for refusal in planned.refusals]
    )
    assert planned.refusals[3].startswith("limits.max_job_seconds 500000 needs 500000")
    assert planned.refusals[0].endswith(
        "--service-code sagemaker --quota-code L-09B4A649 --desired-value 32"
    )


def test_an_unknown_price_is_refused_and_never_taken_for_nothing(snapshot: Snapshot) -> None:
    suite = unprepared_suite(
        training={}, matrix={"instance": ["ml.g5.xlarge", "ml.g7.2xlarge"]}, baseline={}
    )
    planned = plan_with_quotas(suite)
    snapshot(list(planned.refusals))
    assert (planned.one_attempt_usd, planned.worst_case_usd) == (None, None)


def test_one_job_alone_beyond_the_cap_is_refused_but_many_are_not(
    snapshot: Snapshot,
) -> None:
    suite = unprepared_suite(limits={**HALF_AN_HOUR, "max_usd": "0.70"})
    planned = plan_with_quotas(suite)
    snapshot(list(planned.refusals))
    # half an hour at 1.408
    exact = unprepared_suite(limits={**HALF_AN_HOUR, "max_usd": "0.704"})
    assert plan_with_quotas(exact).refusals == ()
    longer = unprepared_suite(limits={**HALF_AN_HOUR, "max_usd": "0.704", "max_job_seconds": 1321})
    assert len(plan_with_quotas(longer).refusals) == 1


def test_this_machine_needs_no_quota() -> None:
    suite = unprepared_suite(training={"instance": "local.cpu"})
    assert needed_quotas(suite) == ()
    planned = plan_suite(
        suite,
        execution_id="e",
        prices={"local.cpu": price("local.cpu", "0.05")},
        quotas={},
        histories={},
    )
    assert (planned.refusals, planned.notes) == ((), ())
    # 2 jobs of half an hour, one after the other
    assert (planned.lanes[0].concurrency, planned.one_attempt_hours) == (1, Decimal(1))


def test_an_unknown_quota_leaves_one_run_at_a_time(snapshot: Snapshot) -> None:
    suite = unprepared_suite(training={"instance": "ml.m5.xlarge"})
    quota = instance_quota("ml.m5.xlarge", Purchase.ON_DEMAND)
    assert (quota.code, quota.default) == (None, None)
    planned = plan(suite, price("ml.m5.xlarge", "0.1"), across_all=50)
    assert planned.lanes[0].concurrency == 1
    snapshot(planned.notes)


@pytest.mark.parametrize(("account", "hours"), [(100, "0.5"), (2, "1"), (1, "2")])
def test_lanes_side_by_side_take_the_time_of_the_longest(account: int, hours: str) -> None:
    matrix: dict[str, Any] = {"instance": ["ml.g5.xlarge", "ml.g6.xlarge"]}
    suite = unprepared_suite(training={}, matrix=matrix, baseline={}, limits=LIMITS)
    planned = plan(
        suite, price("ml.g5.xlarge", "1"), price("ml.g6.xlarge", "1"), usage=100, across_all=account
    )
    # two lanes of two runs of half an hour: all at once; one of each lane; one at a time
    assert planned.one_attempt_hours == Decimal(hours)


def test_a_lane_begins_at_the_first_end_of_those_in_progress() -> None:
    # lanes of 2, 6 and 2 runs of half an hour, one run at a time in each, two lanes at once:
    # g5 ends after 1 h, g6 after 3 h, and g6e runs from 1 h to 2 h
    matrix = {"instance": ["ml.g5.xlarge", "ml.g6.xlarge", "ml.g6e.xlarge"]}
    include = [{"instance": "ml.g6.xlarge", "seed": seed} for seed in (1, 2)]
    suite = unprepared_suite(
        training={},
        matrix=matrix,
        baseline={},
        include=include,
        limits=LIMITS,
        measurement=LONE_RUNS,
    )
    prices = [price(name, "1") for name in matrix["instance"]]
    planned = plan(suite, *prices, usage=1, across_all=2)
    assert [(lane.run_count, lane.concurrency) for lane in planned.lanes] == [
        (2, 1),
        (6, 1),
        (2, 1),
    ]
    assert (planned.lanes_at_once, planned.one_attempt_hours) == (2, Decimal(3))
