"""What preparing the data may cost, and when it refuses a suite."""

from decimal import Decimal
from typing import Any

import pytest

from tests.unit.planned_suites import price
from tests.unit.run_samples import known
from tests.unit.suites import small_suite, unprepared_suite
from traindyno.core.planning.preparation_plan import (
    PreparationPlan,
    due_preparations,
    plan_preparation,
    planned_instances,
    refuse_preparation,
)
from traindyno.core.planning.quotas import QuotaReading, account_quota, instance_quota
from traindyno.core.run.tokens import TokenSet
from traindyno.core.suite.choices import Purchase
from traindyno.core.suite.suite import Suite

MACHINE = "ml.m7i.xlarge"
QUOTAS = {
    "instance": instance_quota(MACHINE, Purchase.ON_DEMAND),
    "account": account_quota(Purchase.ON_DEMAND),
}


def suite_of(**limits: Any) -> Suite:
    given = {"max_usd": 50, "max_hours": 4, "max_job_seconds": 1800, "max_attempts": 3, **limits}
    # an hour is billed at most: with 120 s to stop, 300 s to upload and 60 s of margin
    return small_suite(limits=given, preparation={"instance": MACHINE, "max_seconds": 2640})


def planned(suite: Suite, *ready: bool, usd: str | None = "0.50") -> PreparationPlan:
    tokens = [
        TokenSet(packing=index == 0, key=f"{index}" * 64, is_ready=is_ready)
        for index, is_ready in enumerate(ready)
    ]
    prices = {} if usd is None else {MACHINE: price(MACHINE, usd)}
    return known(plan_preparation(suite, prices=prices, quotas={}, tokens=tokens))


def reasons(suite: Suite, plan: PreparationPlan | None, **quotas: int) -> list[str]:
    readings = {
        QUOTAS[name].name: QuotaReading(quota=QUOTAS[name], applied=limit, default=None, in_use=0)
        for name, limit in quotas.items()
    }
    return [*refuse_preparation(suite, plan, readings)]


def test_jobs_with_ready_tokens_cost_nothing() -> None:
    for ready, count, once in (
        ((False, False), 2, "1.00"),
        ((True, False), 1, "0.50"),
        ((True, True), 0, "0"),
    ):
        plan = planned(suite_of(), *ready)
        assert (plan.job_count, plan.one_attempt_usd) == (count, Decimal(once))
        # three attempts each
        assert plan.worst_case_usd == Decimal(once) * 3
        assert len(due_preparations(plan, "e")) == count


def test_an_unknown_price_leaves_the_cost_unknown_unless_all_is_ready() -> None:
    unknown = planned(suite_of(), False, usd=None)
    ready = planned(suite_of(), True, usd=None)
    assert (unknown.one_attempt_usd, unknown.worst_case_usd) == (None, None)
    assert (ready.one_attempt_usd, ready.worst_case_usd) == (Decimal(0), Decimal(0))
    (reason,) = reasons(suite_of(), unknown)
    assert f"the price of {MACHINE}" in reason
    assert reasons(suite_of(), ready) == []


def test_without_tokens_nothing_is_planned() -> None:
    suite = unprepared_suite()
    assert plan_preparation(suite, prices={}, quotas={}, tokens=None) is None
    assert due_preparations(None, "e") == ()
    assert reasons(suite, None) == []
    assert planned_instances(suite) == ("ml.g5.xlarge",)
    assert planned_instances(suite_of()) == ("ml.g5.xlarge", MACHINE)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"max_usd": 0.5}, []),
        (
            {"max_usd": 0.49},
            ["may cost $0.50 at $0.50 per instance hour (3600 s:", "over limits.max_usd $0.49: "],
        ),
        ({"max_hours": 1}, []),
        ({"max_hours": 0.7}, ["may take 2640 s, over limits.max_hours 0.7"]),
    ],
)
def test_one_attempt_must_fit_under_the_cap_and_into_the_hours(
    limits: dict[str, float], words: list[str]
) -> None:
    suite = suite_of(**{"max_job_seconds": 600, **limits})
    told = reasons(suite, planned(suite, False))
    assert len(told) == bool(words)
    assert all(word in told[0] for word in words)


def test_one_instance_of_the_quotas_is_enough_and_none_is_not() -> None:
    suite = suite_of()
    plan = planned(suite, False)
    assert reasons(suite, plan, instance=1, account=1) == []
    assert len(reasons(suite, plan, instance=0, account=1)) == 1
    assert len(reasons(suite, plan, instance=1, account=0)) == 1
