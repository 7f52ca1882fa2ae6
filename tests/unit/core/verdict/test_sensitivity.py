"""At which price and which size the answer changes."""

from decimal import Decimal
from typing import Any

import pytest

from tests.unit.run_samples import known
from tests.unit.verdict_samples import BEST, SECOND, make_estimate, make_row
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.goal_metric import (
    Metric,
    cell_line,
    estimate_of,
    find_break_even,
    find_crossover,
    find_sensitivity,
)

TRN1 = "ml.trn1.32xlarge"
EXAMPLES = 90_000
METRICS = (Metric.SECONDS, Metric.INSTANCE_HOURS, Metric.USD)


def row(
    cell_id: str = BEST,
    *,
    overhead: float = 100.0,
    rate: float = 100.0,
    usd_per_hour: int = 36,
    **changes: Any,
) -> CellRow:
    """Half of the overhead is training time; ``rate``: samples per second of the whole work, with
    all that slows it.
    """
    seconds = overhead / 2 + EXAMPLES / rate
    given = {
        "overhead_seconds": overhead,
        "training_overhead_seconds": overhead / 2,
        "seconds": make_estimate(seconds + overhead / 2),
        "instance_hours": make_estimate(seconds / 3600),
        "usd": make_estimate(seconds / 3600 * usd_per_hour),
        "usd_per_instance_hour": Decimal(usd_per_hour),
    }
    return make_row(cell_id, **{**given, **changes})


def other(**changes: Any) -> CellRow:
    """Half the overhead, and half the rate."""
    return row(SECOND, overhead=50.0, rate=50.0, usd_per_hour=20, **{"instance": TRN1, **changes})


def crossing(best: CellRow, second: CellRow, metric: Metric) -> int | None:
    found = find_crossover(best, second, metric=metric, examples=EXAMPLES)
    return found.examples if found else None


def test_the_other_type_breaks_even_at_a_lower_price() -> None:
    found = known(find_break_even(make_row(), other(usd=make_estimate(25.0))))
    # $20 x 10 / 25
    assert (found.instance, found.usd_per_instance_hour, found.now_usd_per_instance_hour) == (
        TRN1,
        Decimal(8),
        Decimal(20),
    )
    both = find_sensitivity(make_row(), [other(), other(usd=None)], Metric.USD, examples=EXAMPLES)
    assert len(both.break_evens) == 1


@pytest.mark.parametrize(
    "changes", [{"usd_per_instance_hour": None}, {"usd": None}, {"instance": "ml.p4d.24xlarge"}]
)
def test_one_price_moves_cells_of_one_type_and_an_unknown_one_moves_nothing(
    changes: dict[str, Any],
) -> None:
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
def test_two_cells_meet_where_less_overhead_makes_up_for_the_rate(
    metric: Metric, examples: int
) -> None:
    assert crossing(row(), other(), metric) == examples
    found = find_sensitivity(row(), [other()], metric, examples=EXAMPLES).crossovers
    assert [(each.cell_id, each.examples) for each in found] == [(SECOND, examples)]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("slower", [1.0, 1.3, 2.5])
def test_the_lines_give_the_figures_of_the_table_at_the_suites_work(
    metric: Metric, slower: float
) -> None:
    """The full run's schedule, failures and interruptions make the work slower than the trial's
    rate.
    """
    for found in (row(rate=100 / slower), other()):
        total, line = estimate_of(found, metric), cell_line(found, metric, EXAMPLES)
        assert line is not None
        assert line.fixed + line.per_example * EXAMPLES == pytest.approx(known(total).mean)
    plain, late = (crossing(row(rate=100 / each), other(), metric) for each in (1.0, slower))
    assert late is None or slower == 1.0 or late > known(plain)


def test_instances_and_the_billed_share_weigh_the_overhead() -> None:
    # half of the time is billed: 25 s of overhead at $36, and the same total
    line, half = (
        cell_line(row(billable_share=share), Metric.USD, EXAMPLES) for share in (1.0, 0.5)
    )
    assert known(half).fixed == known(line).fixed / 2
    double = known(cell_line(row(instance_count=2), Metric.INSTANCE_HOURS, EXAMPLES))
    assert double.fixed == pytest.approx(2 * 50 / 3600)


@pytest.mark.parametrize(
    ("metric", "changes"),
    [
        (Metric.SECONDS, {"overhead_seconds": 100.0}),
        (Metric.SECONDS, {"seconds": make_estimate(500.0)}),
        (Metric.SECONDS, {"seconds": make_estimate(40.0)}),
        (Metric.SECONDS, {"seconds": None}),
        (Metric.SECONDS, {"overhead_seconds": None}),
        (Metric.USD, {"usd_per_instance_hour": None}),
        (Metric.USD, {"billable_share": None}),
        (Metric.SECONDS_TO_TARGET, {}),
    ],
)
def test_without_less_overhead_and_slower_work_there_is_no_crossover(
    metric: Metric, changes: dict[str, Any]
) -> None:
    assert crossing(row(), other(**changes), metric) is None


@pytest.mark.parametrize(("overhead", "examples"), [(99.98, 2), (99.99, None)])
def test_a_work_of_one_example_is_none(overhead: float, examples: int | None) -> None:
    assert crossing(row(), row(SECOND, overhead=overhead, rate=50.0), Metric.SECONDS) == examples
