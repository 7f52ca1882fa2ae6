"""`traindyno plan --regions`, against AWS's own service models."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest

from tests.unit.aws.test_prices_and_quotas import product
from tests.unit.lab_in_memory import no_sleep
from tests.unit.planned_lab import FixedQuotas
from tests.unit.stubbed import stubbed
from tests.unit.suites import small_suite
from traindyno.aws.quotas import Quotas
from traindyno.cli.display.region_table import print_regions, region_problems, regions_table
from traindyno.cli.inputs.region_comparison import RegionClients, compare_regions
from traindyno.cli.option_values import split_names
from traindyno.cli.output import OutputFormat, Terminal
from traindyno.core.planning.regions import RegionalType, plan_hours, plan_size
from traindyno.core.suite.cells import expand_cells

P5 = "ml.p5.48xlarge"
SUITE = small_suite(training={}, baseline={}, matrix={"instance": [P5], "instance_count": [1, 3]})
STARTS = datetime(2026, 11, 25, 11, 30, tzinfo=UTC)


@contextmanager
def denied_quotas() -> Iterator[Quotas]:
    """Quotas of a region that the account has not enabled."""
    with (
        stubbed("service-quotas") as (quotas, stubber),
        stubbed("cloudwatch") as (cloudwatch, _),
        stubbed("sagemaker") as (sagemaker, _),
    ):
        stubber.add_client_error("get_service_quota", "UnrecognizedClientException", "not enabled")
        yield Quotas(quotas, cloudwatch, sagemaker, sleep=no_sleep)


def offering(starts: datetime, fee: str) -> dict[str, Any]:
    return {
        "TrainingPlanOfferingId": "tpo-1",
        "TargetResources": ["training-job"],
        "DurationHours": 24,
        "UpfrontFee": fee,
        "CurrencyCode": "USD",
        "ReservedCapacityOfferings": [
            {"InstanceType": P5, "InstanceCount": 4, "AvailabilityZone": "us-east-1a", "StartTime": starts}
        ],
    }


@contextmanager
def region(
    price: str | None, quotas: Quotas, offerings: list[dict[str, Any]] | None, *, error: str | None = None
) -> Iterator[RegionClients]:
    with ExitStack() as stack:
        pricing, prices = stack.enter_context(stubbed("pricing"))
        sagemaker, plans = stack.enter_context(stubbed("sagemaker"))
        products = [product(price, usage_type=f"USE1-Train:{P5}")] if price else []
        prices.add_response("get_products", {"PriceList": products})
        asked = {
            "InstanceType": P5,
            "InstanceCount": 4,
            "DurationHours": 24,
            "TargetResources": ["training-job"],
        }
        if error:
            plans.add_client_error("search_training_plan_offerings", error, "no", expected_params=asked)
        elif offerings is not None:
            plans.add_response("search_training_plan_offerings", {"TrainingPlanOfferings": offerings}, asked)
        yield RegionClients(pricing=pricing, quotas=quotas, sagemaker=sagemaker)


def compared(**regions: RegionClients) -> dict[str, RegionalType]:
    named = {name.replace("_", "-"): found for name, found in regions.items()}
    found = compare_regions(SUITE, expand_cells(SUITE), list(named), connect=named.__getitem__, now=0.0)
    return {each.region: each for each in found}


def test_regions_stand_side_by_side_with_prices_quotas_and_the_earliest_plan() -> None:
    later = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
    with (
        region("55.04", FixedQuotas(4), [offering(later, "3000"), offering(STARTS, "2880.00")]) as east,
        region("60.00", FixedQuotas(2), []) as west,
        region(None, FixedQuotas(9), None) as south,
        denied_quotas() as denied,
        region("58.00", denied, None, error="AccessDeniedException") as north,
    ):
        found = compared(us_east_1=east, us_west_2=west, sa_east_1=south, eu_north_1=north)
    first = found["us-east-1"]
    assert first.price is not None
    assert (first.price.usd_per_hour, first.largest, first.fits) == (Decimal("55.04"), 3, True)
    # the largest job has 3 instances, the smallest plan for it 4: $2,880 / (4 x 24 h)
    assert first.plan.offer is not None
    assert (first.plan.offer.usd_per_hour, first.plan.offer.starts_at) == (Decimal(30), STARTS.timestamp())
    assert (found["us-west-2"].fits, found["us-west-2"].plan.reason) == (False, "none is offered")
    assert (found["sa-east-1"].price, found["sa-east-1"].plan.reason) == (None, "not offered here")
    closed = found["eu-north-1"]
    assert (closed.fits, closed.plan.reason) == (None, "AccessDeniedException: no")
    console = Terminal(file=StringIO(), width=200)
    console.print(regions_table(list(found.values())))
    assert isinstance(console.file, StringIO)
    text = console.file.getvalue()
    for expected in (
        "$30.00/h from 2026-11-25 11:30 UTC: 4 × 24 h, us-east-1a",
        "3 ×, fits",
        "3 ×, needs an increase",
        "not offered",
        "3 ×, unknown",
    ):
        assert expected in text
    (problem,) = region_problems(list(found.values()))
    assert problem.startswith("eu-north-1, ml.p5.48xlarge: An error occurred (UnrecognizedClientException)")


def test_regions_as_json_say_whether_the_largest_job_fits(capsys: pytest.CaptureFixture[str]) -> None:
    with region("55.04", FixedQuotas(4), []) as east, region("60.00", FixedQuotas(2), []) as west:
        print_regions("demo", list(compared(us_east_1=east, us_west_2=west).values()), OutputFormat.JSON)
    document = json.loads(capsys.readouterr().out)
    assert document["suite"] == "demo"
    assert [(each["region"], each["fits"]) for each in document["regions"]] == [
        ("us-east-1", True),
        ("us-west-2", False),
    ]


def test_regions_are_separated_by_commas() -> None:
    assert split_names("us-east-1, eu-west-1,,us-east-1") == ["us-east-1", "eu-west-1"]


@pytest.mark.parametrize(("largest", "size"), [(1, 1), (3, 4), (64, 64), (65, None)])
def test_a_plan_holds_the_largest_job(largest: int, size: int | None) -> None:
    assert plan_size(largest) == size


def test_a_plan_lasts_for_whole_days() -> None:
    limits = {"max_usd": 10, "max_hours": 25, "max_job_seconds": 600}
    assert (plan_hours(small_suite()), plan_hours(small_suite(limits=limits))) == (24, 48)
