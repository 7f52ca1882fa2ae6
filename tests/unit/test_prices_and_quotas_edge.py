import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.lab_in_memory import NOW
from tests.unit.stubbed import stubbed
from traindyno.aws.prices import read_prices
from traindyno.aws.quotas import Quotas
from traindyno.core.planning.quotas import Quota, QuotaReading, instance_quota
from traindyno.core.suites.suite import Purchase

P4D = "ml.p4d.24xlarge"
QUOTA = instance_quota(P4D, Purchase.ON_DEMAND)


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
        "Filters": [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in fields],
    }
    with stubbed("pricing") as (client, stubber):
        stubber.add_response("get_products", {"PriceList": list(products)}, expected)
        return dict(read_prices(client, [P4D, P4D], region="us-east-1", now=NOW))


def test_a_price_comes_with_its_date_region_and_source() -> None:
    price = read(product("25.251286"))[P4D]
    assert price.usd_per_hour == Decimal("25.251286")
    assert (price.region, price.as_of, price.source) == ("us-east-1", "2026-09-21", "AWS Price List")


def test_a_list_that_has_a_version_is_named_with_it() -> None:
    versioned = json.dumps({**json.loads(product("25.25")), "version": "local-snapshot-2026-11-21"})
    assert read(versioned)[P4D].source == "AWS Price List local-snapshot-2026-11-21"


def test_free_tiers_clusters_and_plans_are_not_the_price_of_training() -> None:
    cluster = product("99", usage_type=f"USE1-Cluster:{P4D}")
    plan = product("98", usage_type=f"USE1-Train:{P4D}-trainingplaninuse")
    prices = read(product("0.0000000000"), cluster, plan, product("25.25"), product("97", unit="GB-Mo"))
    assert prices[P4D].usd_per_hour == Decimal("25.25")


def test_what_is_not_listed_has_no_price() -> None:
    assert read() == {}


def test_two_prices_for_the_same_thing_are_not_guessed_between() -> None:
    with pytest.raises(ValueError, match=r"found 25\.25, 26\.00 USD per hour"):
        read(product("26.00"), product("25.25"))


def usage_metric() -> dict[str, Any]:
    return {
        "MetricNamespace": "AWS/Usage",
        "MetricName": "ResourceCount",
        "MetricDimensions": {"Service": "SageMaker", "Resource": f"training-job/{P4D}"},
        "MetricStatisticRecommendation": "Maximum",
    }


def read_quota(
    *, applied: dict[str, Any] | None, default: dict[str, Any] | None = None, points: list[dict[str, Any]] | None = None
) -> QuotaReading:
    asked = {"ServiceCode": "sagemaker", "QuotaCode": "L-09B4A649"}
    with stubbed("service-quotas") as (quotas, stubber), stubbed("cloudwatch") as (cloudwatch, metrics):
        if applied is None:
            stubber.add_client_error("get_service_quota", "NoSuchResourceException", expected_params=asked)
            stubber.add_response("get_aws_default_service_quota", {"Quota": default or {}}, asked)
        else:
            stubber.add_response("get_service_quota", {"Quota": applied}, asked)
        if points is not None:
            metrics.add_response("get_metric_statistics", {"Datapoints": points})
        return Quotas(quotas, cloudwatch).read([QUOTA], now=NOW)[QUOTA.name]


def test_an_applied_value_counts_with_what_is_in_use_of_it_at_the_latest() -> None:
    points = [
        {"Timestamp": datetime.fromtimestamp(NOW - 60, UTC), "Maximum": 3.0},
        {"Timestamp": datetime.fromtimestamp(NOW - 360, UTC), "Maximum": 8.0},
    ]
    reading = read_quota(applied={"Value": 16.0, "UsageMetric": usage_metric()}, points=points)
    assert (reading.applied, reading.in_use, reading.available) == (16, 3, 13)


def test_without_an_applied_value_the_default_holds() -> None:
    reading = read_quota(applied=None, default={"Value": 2.0})
    assert (reading.applied, reading.default, reading.limit, reading.in_use) == (None, 2, 2, None)


def test_an_applied_value_of_zero_is_a_value() -> None:
    assert read_quota(applied={"Value": 0.0}).limit == 0


def test_usage_without_a_measurement_is_unknown() -> None:
    assert read_quota(applied={"Value": 1.0, "UsageMetric": usage_metric()}, points=[]).in_use is None


def test_a_quota_whose_code_is_not_known_is_not_asked_for() -> None:
    unlisted = Quota(name="ml.new.48xlarge for training job usage", code=None, default=None)
    with stubbed("service-quotas") as (quotas, _), stubbed("cloudwatch") as (cloudwatch, _):
        reading = Quotas(quotas, cloudwatch).read([unlisted], now=NOW)[unlisted.name]
    assert reading == QuotaReading(quota=unlisted, applied=None, default=None, in_use=None)
