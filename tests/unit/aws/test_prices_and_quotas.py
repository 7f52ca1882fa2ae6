import json
from decimal import Decimal
from typing import Any

import pytest
from botocore.stub import Stubber

from tests.unit.lab_in_memory import NOW
from tests.unit.stubbed import stubbed
from traindyno.aws.prices import PriceSource
from traindyno.aws.quotas import Quotas
from traindyno.core.errors import SuiteRefused
from traindyno.core.planning.quotas import QuotaReading, UsageSource, account_quota, instance_quota
from traindyno.core.suite.choices import Purchase
from traindyno.sagemaker.job_description import read_held_instances

P4D = "ml.p4d.24xlarge"
QUOTA = instance_quota(P4D, Purchase.ON_DEMAND)
DESCRIBED = {
    "TrainingJobArn": "arn:aws:x",
    "ModelArtifacts": {"S3ModelArtifacts": "s3://x"},
    "TrainingJobStatus": "InProgress",
    "SecondaryStatus": "Training",
    "AlgorithmSpecification": {"TrainingInputMode": "File"},
    "StoppingCondition": {},
    "CreationTime": NOW,
}
NEW_TYPE = "ml.new9.xlarge"
NEW_QUOTA = instance_quota(NEW_TYPE, Purchase.ON_DEMAND)


def product(usd: str, *, usage_type: str = f"USE1-Train:{P4D}", unit: str = "Hrs") -> str:
    dimension = {"unit": unit, "pricePerUnit": {"USD": usd}}
    return json.dumps(
        {
            "product": {"attributes": {"usagetype": usage_type}},
            "terms": {"OnDemand": {"a": {"priceDimensions": {"b": dimension}}}},
        }
    )


def read(*products: str) -> dict[str, Any]:
    fields = (("regionCode", "us-east-1"), ("platoinstancetype", "Training"), ("instanceName", P4D))
    expected = {
        "ServiceCode": "AmazonSageMaker",
        "Filters": [
            {"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in fields
        ],
    }
    with stubbed("pricing") as (client, stubber):
        stubber.add_response("get_products", {"PriceList": list(products)}, expected)
        return dict(PriceSource(region="us-east-1", now=NOW, pricing=client).read([P4D, P4D]))


def test_a_price_comes_with_its_date_region_and_source() -> None:
    price = read(product("25.251286"))[P4D]
    assert price.usd_per_hour == Decimal("25.251286")
    assert (price.region, price.as_of, price.source) == (
        "us-east-1",
        "2026-09-21",
        "AWS Price List",
    )


def test_a_list_with_a_version_is_named_with_it() -> None:
    versioned = json.dumps({**json.loads(product("25.25")), "version": "local-snapshot-2026-11-21"})
    assert read(versioned)[P4D].source == "AWS Price List local-snapshot-2026-11-21"


def test_free_tiers_clusters_and_plans_are_not_the_price_of_training() -> None:
    cluster = product("99", usage_type=f"USE1-Cluster:{P4D}")
    plan = product("98", usage_type=f"USE1-Train:{P4D}-trainingplaninuse")
    prices = read(
        product("0.0000000000"), cluster, plan, product("25.25"), product("97", unit="GB-Mo")
    )
    assert prices[P4D].usd_per_hour == Decimal("25.25")


def test_unlisted_types_have_no_price() -> None:
    assert read() == {}


def test_two_prices_for_the_same_thing_are_not_guessed_between() -> None:
    with pytest.raises(SuiteRefused, match=r"several Training prices, 25\.25, 26\.00 USD per hour"):
        read(product("26.00"), product("25.25"))


def no_wait(_seconds: float) -> None:
    pass


def lay_out_sweep(stubber: Stubber, jobs: list[dict[str, Any]]) -> None:
    """All of them are listed as working; nothing else is listed."""
    times = {"CreationTime": NOW, "LastModifiedTime": NOW}
    listed = [
        {
            "TrainingJobName": job["TrainingJobName"],
            "TrainingJobArn": "arn:aws:x",
            "TrainingJobStatus": "InProgress",
        }
        for job in jobs
    ]
    pages: tuple[tuple[dict[str, str], list[dict[str, Any]]], ...] = (
        ({"StatusEquals": "InProgress"}, listed),
        ({"StatusEquals": "Stopping"}, []),
        ({"WarmPoolStatusEquals": "Available"}, []),
    )
    for asked, summaries in pages:
        stubber.add_response(
            "list_training_jobs",
            {"TrainingJobSummaries": [{**summary, **times} for summary in summaries]},
            {**asked, "MaxResults": 100},
        )
    for job in jobs:
        stubber.add_response("describe_training_job", {**DESCRIBED, **job})


def job(name: str, count: int, instance_type: str = P4D, **more: Any) -> dict[str, Any]:
    resources = {"InstanceType": instance_type, "InstanceCount": count, "VolumeSizeInGB": 1}
    return {"TrainingJobName": name, "ResourceConfig": resources, **more}


def read_quota(
    *,
    applied: dict[str, Any] | None,
    default: dict[str, Any] | None = None,
    jobs: list[dict[str, Any]] | None = None,
) -> QuotaReading:
    """Reads a quota, with the jobs that describe_training_job will be asked for; None: nobody may
    ask for any.
    """
    asked = {"ServiceCode": "sagemaker", "QuotaCode": "L-09B4A649"}
    with stubbed("service-quotas") as (quotas, stubber), stubbed("sagemaker") as (sagemaker, sweep):
        if applied is None:
            stubber.add_client_error(
                "get_service_quota", "NoSuchResourceException", expected_params=asked
            )
            stubber.add_response("get_aws_default_service_quota", {"Quota": default or {}}, asked)
        else:
            stubber.add_response("get_service_quota", {"Quota": applied}, asked)
        if jobs is not None:
            lay_out_sweep(sweep, jobs)
        return Quotas(quotas, sagemaker, sleep=no_wait).read([QUOTA], now=NOW)[QUOTA.name]


def test_without_an_applied_value_the_default_holds() -> None:
    reading = read_quota(applied=None, default={"Value": 2.0}, jobs=[])
    assert (reading.applied, reading.default, reading.limit, reading.in_use) == (None, 2, 2, 0)


def test_an_applied_value_of_zero_is_a_value() -> None:
    assert read_quota(applied={"Value": 0.0}, jobs=[]).limit == 0


def test_the_running_jobs_are_counted() -> None:
    jobs = [
        job("a", 2),
        job("b", 3),
        job("spot", 8, EnableManagedSpotTraining=True),
        job("other", 8, "ml.g5.xlarge"),
        job("ended", 8, TrainingJobStatus="Completed"),
    ]
    reading = read_quota(applied={"Value": 16.0}, jobs=jobs)
    assert (reading.in_use, reading.available) == (5, 11)
    assert (reading.in_use_source, reading.in_use_as_of) == (UsageSource.JOBS, NOW)


def test_jobs_are_swept_once_for_all_quotas_and_slowly() -> None:
    quotas_read = [
        QUOTA,
        instance_quota("ml.g5.xlarge", Purchase.ON_DEMAND),
        account_quota(Purchase.ON_DEMAND),
    ]
    waits: list[float] = []
    with stubbed("service-quotas") as (quotas, stubber), stubbed("sagemaker") as (sagemaker, sweep):
        for _quota in quotas_read:
            stubber.add_response("get_service_quota", {"Quota": {"Value": 9.0}})
        groups = [{"InstanceType": P4D, "InstanceCount": 1, "InstanceGroupName": "a"}] * 2
        mixed = {
            "TrainingJobName": "c",
            "ResourceConfig": {"InstanceGroups": groups, "VolumeSizeInGB": 1},
        }
        lay_out_sweep(
            sweep, [job("a", 2), job("b", 1, "ml.g5.xlarge"), mixed, job("local", 1, "local.cpu")]
        )
        read_back = Quotas(quotas, sagemaker, sleep=waits.append).read(quotas_read, now=NOW)
    assert [reading.in_use for reading in read_back.values()] == [4, 1, 5]
    # no more than two listings and five descriptions a second
    assert (len(waits), min(waits[:3]), min(waits[3:])) == (7, 0.7, 0.3)


def look_up(*names: str) -> QuotaReading:
    """Looks up a quota among AWS's quotas of these names, in two pages."""
    rows = [
        {"QuotaName": name, "QuotaCode": f"L-{index}", "Value": 3.0}
        for index, name in enumerate(names)
    ]
    with stubbed("service-quotas") as (quotas, stubber), stubbed("sagemaker") as (sagemaker, sweep):
        listing = {"ServiceCode": "sagemaker", "MaxResults": 100}
        stubber.add_response(
            "list_aws_default_service_quotas", {"Quotas": rows[:1], "NextToken": "more"}, listing
        )
        stubber.add_response(
            "list_aws_default_service_quotas",
            {"Quotas": rows[1:]},
            {**listing, "NextToken": "more"},
        )
        if NEW_QUOTA.name in names:
            asked = {"ServiceCode": "sagemaker", "QuotaCode": f"L-{names.index(NEW_QUOTA.name)}"}
            stubber.add_response("get_service_quota", {"Quota": {"Value": 5.0}}, asked)
            lay_out_sweep(sweep, [])
        else:
            stubber.add_response("list_service_quotas", {"Quotas": []}, listing)
        return Quotas(quotas, sagemaker, sleep=no_wait).read([NEW_QUOTA], now=NOW)[NEW_QUOTA.name]


def test_a_quota_with_an_unknown_code_is_found_by_its_name() -> None:
    reading = look_up("Apps of all kinds", f"{NEW_TYPE} for training job usage")
    assert NEW_QUOTA.code is None
    assert (reading.quota.code, reading.applied, reading.is_not_listed) == ("L-1", 5, False)


def test_a_name_in_no_list_is_not_listed() -> None:
    reading = look_up("Apps of all kinds", f"{NEW_TYPE} for spot training job usage")
    assert reading == QuotaReading(
        quota=NEW_QUOTA,
        applied=None,
        default=None,
        in_use=None,
        is_not_listed=True,
        region="us-east-1",
    )


def test_a_quota_answered_without_a_value_is_unknown_with_its_reason() -> None:
    row = {
        "ErrorReason": {
            "ErrorCode": "DEPENDENCY_ACCESS_DENIED_ERROR",
            "ErrorMessage": "no access to its metric",
        }
    }
    with stubbed("service-quotas") as (quotas, stubber), stubbed("sagemaker") as (sagemaker, _):
        stubber.add_response("get_service_quota", {"Quota": row})
        reading = Quotas(quotas, sagemaker, sleep=no_wait).read_limits([QUOTA])[QUOTA.name]
    assert (reading.limit, reading.available) == (None, None)
    assert "DEPENDENCY_ACCESS_DENIED_ERROR: no access to its metric" in str(reading.unknown_because)


def test_a_serverless_job_of_somebody_else_holds_no_instances() -> None:
    job = {
        "TrainingJobName": "other",
        "TrainingJobStatus": "InProgress",
        "SecondaryStatus": "Training",
    }
    assert list(read_held_instances(job)) == []
