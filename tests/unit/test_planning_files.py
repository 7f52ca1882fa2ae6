"""Prices and quotas that a person wrote down."""

from decimal import Decimal
from typing import Any

import pytest

from tests.unit.suites import small_suite
from traindyno.core.cells import expand_cells
from traindyno.core.errors import DocumentInvalid
from traindyno.core.plan import plan_suite
from traindyno.core.planning_files import read_price_file, read_quota_file
from traindyno.core.prices import spot_saving
from traindyno.core.quotas import QuotaIncrease, merge_increases, needed_quotas

PRICES = {"region": "us-east-1", "as_of": "2026-11-21", "usd_per_hour": {"ml.g5.xlarge": 1.408}}


def problems(document: Any) -> list[str]:
    with pytest.raises(DocumentInvalid) as invalid:
        read_price_file(document, source="prices.yaml")
    return [str(problem) for problem in invalid.value.problems]


def test_a_price_keeps_its_file_region_and_date() -> None:
    price = read_price_file(PRICES, source="prices.yaml")["ml.g5.xlarge"]
    assert (price.usd_per_hour, price.region) == (Decimal("1.408"), "us-east-1")
    assert (price.as_of, price.source, price.currency) == ("2026-11-21", "prices.yaml", "USD")


def test_every_problem_of_a_file_is_named() -> None:
    wrong = {"region": 1, "usd_per_hour": {"ml.g5.xlarge": "cheap"}, "date": "today"}
    assert problems(wrong) == [
        "region: expected text, got 1",
        "as_of: expected text, got nothing",
        'usd_per_hour.ml.g5.xlarge: expected a number, got "cheap"',
        'date: expected one of region, as_of, usd_per_hour, got an unknown field "date"',
    ]
    assert problems({**PRICES, "usd_per_hour": {"ml.g5.xlarg": 1, "ml.g6.xlarge": 0}}) == [
        "usd_per_hour.ml.g5.xlarg: expected a training instance type (did you mean ml.g5.xlarge?), got ml.g5.xlarg",
        "usd_per_hour.ml.g6.xlarge: expected more than 0, got 0",
    ]


def test_a_plan_can_be_made_of_files_alone() -> None:
    suite = small_suite()
    written = {
        "applied": {"ml.g5.xlarge for training job usage": 8, "Number of instances across all training jobs": 6},
        "in_use": {"ml.g5.xlarge for training job usage": 5},
    }
    quotas = read_quota_file(written, needed_quotas(suite, expand_cells(suite)))
    prices = read_price_file(PRICES, source="prices.yaml")
    plan = plan_suite(suite, execution_id="plan", prices=prices, quotas=quotas)
    assert plan.refusals == ()
    assert plan.lanes[0].concurrency == 3


def test_what_the_file_leaves_out_is_awss_default() -> None:
    suite = small_suite()
    quotas = read_quota_file({"applied": {}}, needed_quotas(suite, expand_cells(suite)))
    plan = plan_suite(suite, execution_id="plan", prices=read_price_file(PRICES, source="prices.yaml"), quotas=quotas)
    assert [increase.request()["QuotaCode"] for increase in plan.increases] == [
        quotas["ml.g5.xlarge for training job usage"].quota.code
    ]


def test_one_quota_is_asked_for_once_and_for_the_most() -> None:
    def increase(name: str, desired: int) -> QuotaIncrease:
        return QuotaIncrease(name=name, code="L-1", current_value=0, desired_value=desired)

    merged = merge_increases([increase("a", 2), increase("b", 1), increase("a", 16), increase("a", 4)])
    assert [(one.name, one.desired_value) for one in merged] == [("a", 16), ("b", 1)]


def test_a_request_without_a_code_says_where_to_ask() -> None:
    nameless = QuotaIncrease(name="ml.m5.large for training job usage", code=None, current_value=0, desired_value=1)
    with pytest.raises(ValueError, match="has no known code; expected a request through the Service Quotas console"):
        nameless.request()


def test_spot_saves_the_share_of_time_that_is_not_billed() -> None:
    # 1000 s of training, 320 s billed: 68 per cent saved
    assert spot_saving(billable_seconds=Decimal(320), training_seconds=Decimal(1000)) == Decimal("0.68")
    assert spot_saving(billable_seconds=Decimal(0), training_seconds=Decimal(0)) is None
