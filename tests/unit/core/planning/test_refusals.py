"""Why a valid suite can't run, at the values where the reasons begin."""

from dataclasses import replace
from typing import Any

import pytest

from tests.sentences import Snapshot
from tests.unit.run_samples import make_cell
from tests.unit.suites import unprepared_suite
from traindyno.core.planning.jobs import separate_job
from traindyno.core.planning.lanes import split_lanes
from traindyno.core.planning.quotas import (
    Quota,
    QuotaReading,
    account_quota,
    instance_quota,
    is_host_shared,
    job_size_quota,
    known_quotas,
    needed_quotas,
    run_time_quota,
)
from traindyno.core.planning.refusals import (
    refuse_hours,
    refuse_instances,
    refuse_quota,
    refuse_quotas,
)
from traindyno.core.suite.choices import Purchase
from traindyno.core.suite.runs import trial_runs

G5 = "ml.g5.xlarge"
QUOTA = instance_quota(G5, Purchase.ON_DEMAND)


def reading(**changes: Any) -> QuotaReading:
    given: dict[str, Any] = {"quota": QUOTA, "applied": 4, "default": 1, "in_use": 0, **changes}
    return QuotaReading(**given)


@pytest.mark.parametrize(("seconds", "is_refused"), [(3600, False), (3601, True)])
def test_one_job_must_fit_into_the_hours(seconds: int, is_refused: bool) -> None:
    suite = unprepared_suite(limits={"max_usd": 50, "max_hours": 1, "max_job_seconds": seconds})
    reasons = [*refuse_hours("one job", seconds, suite.limits, shorten="limits.max_job_seconds")]
    assert bool(reasons) is is_refused
    assert all(
        f"one job may take {seconds} s, over limits.max_hours 1" in reason for reason in reasons
    )


def test_a_quota_of_as_many_as_are_needed_is_enough() -> None:
    assert list(refuse_quota(reading(), 4, "a run")) == []
    assert list(refuse_quota(None, 4, "a run")) == []
    assert list(refuse_quota(reading(applied=None, default=None), 4, "a run")) == []
    (refusal,) = refuse_quota(reading(), 5, "a run")
    assert "which is 4 (applied)\n" in refusal
    assert refusal.endswith(f"--service-code sagemaker --quota-code {QUOTA.code} --desired-value 5")
    (default,) = refuse_quota(reading(applied=None), 5, "a run")
    assert "which is 1 (AWS's default)\n" in default


def test_the_accounts_quota_of_instances_must_hold_the_largest_run_of_any_lane() -> None:
    cells = [make_cell(instance=G5, instance_count=count) for count in (1, 3)] + [
        make_cell(instance="ml.g5.48xlarge")
    ]
    lanes = split_lanes(tuple(map(separate_job, trial_runs("one", cells, [1]))), Purchase.ON_DEMAND)
    quota = account_quota(Purchase.ON_DEMAND)
    readings = {quota.name: QuotaReading(quota=quota, applied=2, default=2, in_use=0)}
    (refusal,) = refuse_quotas(unprepared_suite(), lanes, readings)
    assert refusal.startswith("a run on 3 instances")


def test_instances_in_use_leave_the_rest_available() -> None:
    assert [reading(in_use=used).available for used in (None, 0, 1, 4, 6)] == [4, 4, 3, 0, 0]
    assert reading(applied=None, default=None).available is None
    assert (reading(applied=None).limit, reading(applied=0).limit) == (1, 0)


def test_a_type_without_a_quota_in_the_region_is_refused_with_another_one(
    snapshot: Snapshot,
) -> None:
    unlisted = {QUOTA.name: reading(applied=None, default=None, is_not_listed=True)}
    (refusal,) = refuse_instances(G5, Purchase.ON_DEMAND, 1, "a run", unlisted)
    snapshot(refusal)
    assert "such as ml.g5" in refusal
    assert list(refuse_instances(G5, Purchase.ON_DEMAND, 1, "a run", {QUOTA.name: reading()})) == []


def test_a_quota_without_a_known_code_is_requested_in_the_console(snapshot: Snapshot) -> None:
    (refusal,) = refuse_quota(reading(quota=replace(QUOTA, code=None)), 5, "a run")
    snapshot(refusal)


def test_a_suite_reads_the_quotas_of_its_types_and_purchase() -> None:
    def names(**changes: Any) -> set[str]:
        suite = unprepared_suite(**changes)
        return {quota.name for quota in needed_quotas(suite)}

    account = {quota(Purchase.ON_DEMAND).name for quota in (job_size_quota, account_quota)} | {
        run_time_quota().name
    }
    assert names() == {QUOTA.name, *account}
    assert names(purchase="spot") == {
        "ml.g5.xlarge for spot training job usage",
        "Maximum number of instances per spot training job",
        "Number of instances across all spot training jobs",
        "Longest run time for a training job",
    }
    assert names(training={"instance": "local.cpu"}) == set()


def test_every_quota_of_a_type_is_known_by_name() -> None:
    assert known_quotas()[QUOTA.name] == QUOTA
    assert isinstance(known_quotas()[account_quota(Purchase.SPOT).name], Quota)
    assert not any("local." in name for name in known_quotas())
    assert [is_host_shared(name) for name in ("local.cpu", G5, "ml.unheard.of")] == [
        True,
        False,
        False,
    ]
