"""What a suite asks of a region: its largest jobs, and the plan that would hold them."""

from decimal import Decimal

import pytest

from tests.unit.run_samples import make_cell, make_suite
from traindyno.core.planning.quotas import QuotaReading, instance_quota
from traindyno.core.planning.regions import OfferSearch, RegionalType, largest_jobs, plan_hours, plan_size
from traindyno.core.suite.choices import Purchase
from traindyno.core.suite.suite import Limits


def test_the_largest_job_of_each_type_that_aws_has() -> None:
    cells = [
        make_cell(f"{index:08x}", instance=name, instance_count=count)
        for index, (name, count) in enumerate([("ml.g5.xlarge", 4), ("ml.g5.xlarge", 2), ("local.cpu", 8)])
    ]
    assert largest_jobs(cells) == {"ml.g5.xlarge": 4}
    assert largest_jobs(cells[::-1]) == {"ml.g5.xlarge": 4}


@pytest.mark.parametrize(("largest", "size"), [(1, 1), (2, 2), (3, 4), (64, 64), (65, None)])
def test_a_plan_is_the_smallest_that_holds_the_job(largest: int, size: int | None) -> None:
    assert plan_size(largest) == size


@pytest.mark.parametrize(("max_hours", "hours"), [("0.5", 24), ("24", 24), ("24.5", 48), ("72", 72)])
def test_a_plan_is_sold_by_the_day(max_hours: str, hours: int) -> None:
    limits = Limits(max_usd=Decimal(100), max_hours=Decimal(max_hours), max_job_seconds=600)
    assert plan_hours(make_suite(limits=limits)) == hours


@pytest.mark.parametrize(
    ("applied", "in_use", "fits"), [(4, 0, True), (4, 1, False), (5, 1, True), (None, 0, None), (0, 3, False)]
)
def test_a_job_fits_into_what_the_quota_leaves(applied: int | None, in_use: int, fits: bool | None) -> None:
    quota = instance_quota("ml.g5.xlarge", Purchase.ON_DEMAND)
    regional = RegionalType(
        region="eu-west-1",
        instance_type="ml.g5.xlarge",
        largest=4,
        price=None,
        on_demand=QuotaReading(quota=quota, applied=applied, default=None, in_use=in_use),
        spot=None,
        plan=OfferSearch(offer=None),
    )
    assert regional.fits is fits
