"""At which price and which size the answer changes."""

from decimal import Decimal
from typing import Any

import pytest

from tests.unit.verdict_samples import SECOND, make_estimate, make_row
from traindyno.core.verdict.goal_metric import Metric
from traindyno.core.verdict.sensitivity import find_break_even, find_break_evens, find_crossover, find_crossovers

TRN1 = "ml.trn1.32xlarge"


def other(**changes: Any) -> Any:
    """Half the overhead, and half the rate."""
    return make_row(
        SECOND,
        **{
            "instance": TRN1,
            "overhead_seconds": 50.0,
            "training_overhead_seconds": 25.0,
            "samples_per_second": make_estimate(50.0),
            "usd": make_estimate(25.0),
            "usd_per_instance_hour": Decimal(20),
            **changes,
        },
    )


def test_the_other_type_breaks_even_at_a_lower_price() -> None:
    found = find_break_even(make_row(), other())
    assert found is not None
    # $20 x 10 / 25
    assert (found.instance, found.usd_per_instance_hour, found.now_usd_per_instance_hour) == (
        TRN1,
        Decimal(8),
        Decimal(20),
    )
    assert len(find_break_evens(make_row(), [other(), other(usd=None)])) == 1


@pytest.mark.parametrize("changes", [{"usd_per_instance_hour": None}, {"usd": None}, {"instance": "ml.p4d.24xlarge"}])
def test_one_price_moves_cells_of_one_type_and_an_unknown_one_moves_nothing(changes: dict[str, Any]) -> None:
    assert find_break_even(make_row(), other(**changes)) is None
    assert find_break_even(make_row(usd=None), other()) is None


@pytest.mark.parametrize(
    ("metric", "examples"),
    [
        # 100 + n / 100 = 50 + n / 50
        (Metric.SECONDS, 5_000),
        # (50 + n / 100) / 3600 = (25 + n / 50) / 3600
        (Metric.INSTANCE_HOURS, 2_500),
        # (50 + n / 100) x 36 = (25 + n / 50) x 20: 1300 = n (0.4 - 0.36)
        (Metric.USD, 32_500),
    ],
)
def test_two_cells_meet_where_less_overhead_makes_up_for_the_rate(metric: Metric, examples: int) -> None:
    found = find_crossover(make_row(), other(), metric=metric)
    assert found is not None
    assert (found.cell_id, found.examples) == (SECOND, examples)
    assert [each.examples for each in find_crossovers(make_row(), [other()], metric)] == [examples]


def test_instances_and_the_billed_share_weigh_the_costs() -> None:
    # 2 instances and half of the time billed cost what one does
    found = find_crossover(make_row(instance_count=2, billable_share=0.5), other(), metric=Metric.USD)
    assert found is not None
    assert found.examples == 32_500
    hours = find_crossover(make_row(instance_count=2), other(), metric=Metric.INSTANCE_HOURS)
    # (50 + n / 100) x 2 = 25 + n / 50: they never meet
    assert hours is None


@pytest.mark.parametrize(
    ("metric", "changes"),
    [
        (Metric.SECONDS, {"overhead_seconds": 100.0}),
        (Metric.SECONDS, {"samples_per_second": make_estimate(100.0)}),
        (Metric.SECONDS, {"samples_per_second": make_estimate(200.0)}),
        (Metric.SECONDS, {"seconds": None}),
        (Metric.SECONDS, {"samples_per_second": None}),
        (Metric.SECONDS, {"overhead_seconds": None}),
        (Metric.USD, {"usd_per_instance_hour": None}),
        (Metric.USD, {"billable_share": None}),
        (Metric.SECONDS_TO_TARGET, {}),
    ],
)
def test_without_less_overhead_and_a_lower_rate_there_is_no_crossover(metric: Metric, changes: dict[str, Any]) -> None:
    assert find_crossover(make_row(), other(**changes), metric=metric) is None


@pytest.mark.parametrize(("overhead", "examples"), [(99.98, 2), (99.99, None)])
def test_a_work_of_one_example_is_none(overhead: float, examples: int | None) -> None:
    found = find_crossover(make_row(), other(overhead_seconds=overhead), metric=Metric.SECONDS)
    assert (found.examples if found else None) == examples
