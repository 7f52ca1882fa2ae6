"""At which price and which size the answer changes."""

from decimal import Decimal
from typing import Any

import pytest

from tests.unit.run_samples import completed_result, known, make_suite
from tests.unit.verdict_samples import BEST, SECOND, make_estimate, make_row
from traindyno.core.costs.projection import project_run
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.cell_runs import CellRuns
from traindyno.core.verdict.sensitivity import (
    cell_line,
    find_break_even,
    find_crossover,
    find_sensitivity,
    overheads_of,
)
from traindyno.figures.table import FigureColumn

TRN1 = "ml.trn1.32xlarge"
EXAMPLES = 90_000
#: Seconds, with a spread of 1 % between trials.
APART = {BEST: [99.0, 100.0, 101.0], SECOND: [49.5, 50.0, 50.5]}
METRICS = (FigureColumn.SECONDS, FigureColumn.INSTANCE_HOURS, FigureColumn.USD)


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


def crossing(best: CellRow, second: CellRow, metric: FigureColumn) -> int | None:
    crossover = find_crossover(best, second, metric=metric, examples=EXAMPLES)
    return crossover.examples if crossover else None


def told_crossings(
    overheads: dict[str, list[float]], metric: FigureColumn
) -> list[tuple[str, int]]:
    crossovers = find_sensitivity(
        row(), [other()], metric, examples=EXAMPLES, overheads=overheads
    ).crossovers
    return [(crossover.cell_id, crossover.examples) for crossover in crossovers]


def test_the_other_type_breaks_even_at_a_lower_price() -> None:
    break_even = known(find_break_even(make_row(), other(usd=make_estimate(25.0))))
    # $20 x 10 / 25
    assert (
        break_even.instance,
        break_even.usd_per_instance_hour,
        break_even.now_usd_per_instance_hour,
    ) == (
        TRN1,
        Decimal(8),
        Decimal(20),
    )
    rows = [other(), other(usd=None)]
    both = find_sensitivity(make_row(), rows, FigureColumn.USD, examples=EXAMPLES, overheads=APART)
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
        (FigureColumn.SECONDS, 5_000),
        # (50 + n / 100) / 3600 = (25 + n / 50) / 3600
        (FigureColumn.INSTANCE_HOURS, 2_500),
        # (50 + n / 100) x 36 = (25 + n / 50) x 20: 1300 = n (0.4 - 0.36)
        (FigureColumn.USD, 32_500),
    ],
)
def test_two_cells_meet_at_a_balance_of_overhead_and_rate(
    metric: FigureColumn, examples: int
) -> None:
    assert crossing(row(), other(), metric) == examples
    assert told_crossings(APART, metric) == [(SECOND, examples)]


@pytest.mark.parametrize(
    "overheads",
    [
        {BEST: [12.0, 250.0, 38.0], SECOND: [49.5, 50.0, 50.5]},  # one slow start makes the mean
        {BEST: [100.0], SECOND: [50.0]},
        {BEST: [100.0, 100.0], SECOND: [0.0, 0.0]},
        {},
    ],
)
def test_overheads_that_trials_do_not_tell_apart_have_no_crossover(
    overheads: dict[str, list[float]],
) -> None:
    assert told_crossings(overheads, FigureColumn.SECONDS) == []


def test_the_wait_for_an_instance_is_no_overhead_of_a_cost() -> None:
    suite = make_suite(matrix={"instance": (TRN1,)})
    result = completed_result(suite.cells[0], 1, suite=suite)
    projected = known(project_run(result))
    runs = CellRuns(cell=result.run.cell, measured=(result, result), others=())
    assert projected.overhead_seconds > projected.training_overhead_seconds
    assert overheads_of(runs, FigureColumn.SECONDS) == [projected.overhead_seconds] * 2
    assert overheads_of(runs, FigureColumn.USD) == [projected.training_overhead_seconds] * 2


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("slower", [1.0, 1.3, 2.5])
def test_the_lines_give_the_figures_of_the_table_at_the_suites_work(
    metric: FigureColumn, slower: float
) -> None:
    """The full run's schedule, failures and interruptions make the work slower than the trial's
    rate.
    """
    for cell_row in (row(rate=100 / slower), other()):
        total = cell_row.estimate(metric)
        line = cell_line(cell_row, metric, EXAMPLES)
        assert line is not None
        assert line.fixed + line.per_example * EXAMPLES == pytest.approx(known(total).mean)
    plain, late = (
        crossing(row(rate=100 / slowness), other(), metric) for slowness in (1.0, slower)
    )
    assert late is None or slower == 1.0 or late > known(plain)


def test_instances_and_the_billed_share_weigh_the_overhead() -> None:
    # half of the time is billed: 25 s of overhead at $36, and the same total
    line, half = (
        cell_line(row(billable_share=share), FigureColumn.USD, EXAMPLES) for share in (1.0, 0.5)
    )
    assert known(half).fixed == known(line).fixed / 2
    double = known(cell_line(row(instance_count=2), FigureColumn.INSTANCE_HOURS, EXAMPLES))
    assert double.fixed == pytest.approx(2 * 50 / 3600)


@pytest.mark.parametrize(
    ("metric", "changes"),
    [
        (FigureColumn.SECONDS, {"overhead_seconds": 100.0}),
        (FigureColumn.SECONDS, {"seconds": make_estimate(500.0)}),
        (FigureColumn.SECONDS, {"seconds": make_estimate(40.0)}),
        (FigureColumn.SECONDS, {"seconds": None}),
        (FigureColumn.SECONDS, {"overhead_seconds": None}),
        (FigureColumn.USD, {"usd_per_instance_hour": None}),
        (FigureColumn.USD, {"billable_share": None}),
        (FigureColumn.SECONDS_TO_TARGET, {}),
    ],
)
def test_without_less_overhead_and_slower_work_there_is_no_crossover(
    metric: FigureColumn, changes: dict[str, Any]
) -> None:
    assert crossing(row(), other(**changes), metric) is None


@pytest.mark.parametrize(("overhead", "examples"), [(99.98, 2), (99.99, None)])
def test_a_work_of_one_example_is_none(overhead: float, examples: int | None) -> None:
    assert (
        crossing(row(), row(SECOND, overhead=overhead, rate=50.0), FigureColumn.SECONDS) == examples
    )
