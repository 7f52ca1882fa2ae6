"""Prices and amounts of work at which another cell would be as good as the recommended one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from traindyno.core.costs.prices import SECONDS_PER_HOUR
from traindyno.core.costs.projection import Projection, project_run
from traindyno.core.verdict.cell_row import CellRow, CellTime
from traindyno.core.verdict.cell_runs import CellRuns
from traindyno.core.verdict.conditions import BreakEven, Crossover, Sensitivity
from traindyno.figures.distributions import SIGNIFICANCE
from traindyno.figures.estimates import compare
from traindyno.figures.table import TO_TARGET, FigureColumn

CENTS = Decimal("0.0001")


@dataclass(frozen=True, slots=True, kw_only=True)
class CellLine:
    """A cell's figure over the amount of work, in the metric's unit."""

    fixed: float
    per_example: float


def find_sensitivity(
    best: CellRow,
    beaten: Sequence[CellRow],
    metric: FigureColumn,
    *,
    examples: int,
    overheads: Mapping[str, Sequence[float]],
) -> Sensitivity:
    """``overheads``: seconds of each trial, by cell. A crossover is of overheads that differ by
    more than their trials do.
    """
    break_evens = (find_break_even(best, row) for row in beaten if metric is FigureColumn.USD)
    crossovers = (
        find_crossover(best, row, metric=metric, examples=examples)
        for row in beaten
        if _are_apart(overheads.get(best.cell_id, ()), overheads.get(row.cell_id, ()))
    )
    return Sensitivity(
        break_evens=tuple(filter(None, break_evens)), crossovers=tuple(filter(None, crossovers))
    )


def overheads_of(runs: CellRuns, metric: FigureColumn) -> list[float]:
    """Seconds of the trials, without those of which it is unknown."""
    seconds = (_overhead(projected, metric) for projected in map(project_run, runs.measured))
    return [overhead for overhead in seconds if overhead is not None]


def _overhead(time: Projection | CellTime | None, metric: FigureColumn) -> float | None:
    """Wall clock for a time; training time for cost and hours."""
    if time is None:
        return None
    return (
        time.overhead_seconds if metric is FigureColumn.SECONDS else time.training_overhead_seconds
    )


def _are_apart(first: Sequence[float], second: Sequence[float]) -> bool:
    if min(len(first), len(second)) < 2 or min(*first, *second) <= 0:
        return False
    p = compare(first, second).p
    return p is not None and p < SIGNIFICANCE


def find_break_even(recommended: CellRow, other: CellRow) -> BreakEven | None:
    """The price at which the other cell costs as much; None within one instance type, where one
    price changes both.
    """
    price = other.usd_per_instance_hour
    if (
        price is None
        or recommended.usd is None
        or other.usd is None
        or other.instance == recommended.instance
    ):
        return None
    level = price * Decimal(str(recommended.usd.mean)) / Decimal(str(other.usd.mean))
    return BreakEven(
        cell_id=other.cell_id,
        instance=other.instance,
        usd_per_instance_hour=level.quantize(CENTS),
        now_usd_per_instance_hour=price,
    )


def find_crossover(
    recommended: CellRow, other: CellRow, *, metric: FigureColumn, examples: int
) -> Crossover | None:
    """The intersection of the cells' lines, if the recommended cell has more overhead.

    ``examples``: the suite's.
    """
    line = cell_line(recommended, metric, examples)
    other_line = cell_line(other, metric, examples)
    if line is None or other_line is None or line.fixed <= other_line.fixed:
        return None
    if line.per_example >= other_line.per_example:
        return None
    equal_at = round((line.fixed - other_line.fixed) / (other_line.per_example - line.per_example))
    return Crossover(cell_id=other.cell_id, examples=equal_at) if equal_at > 1 else None


def cell_line(row: CellRow, metric: FigureColumn, examples: int) -> CellLine | None:
    """From the overhead to the cell's figure for the suite's work: failures, interruptions and the
    full run's schedule are in the slope. Time is wall clock; cost and hours are training time.
    """
    total = row.estimate(metric)
    weight = _per_second(row, metric)
    overhead = _overhead(row.time, metric)
    if total is None or weight is None or overhead is None:
        return None
    fixed = overhead * weight
    return (
        CellLine(fixed=fixed, per_example=(total.mean - fixed) / examples)
        if fixed < total.mean
        else None
    )


def _per_second(row: CellRow, metric: FigureColumn) -> float | None:
    if metric in TO_TARGET:
        return None  # the work is not measured in examples
    if metric is FigureColumn.SECONDS:
        return 1.0
    hours = row.instance_count / SECONDS_PER_HOUR
    if metric is FigureColumn.INSTANCE_HOURS:
        return hours
    price = row.usd_per_instance_hour
    share = row.time.billable_share
    return None if price is None or share is None else float(price) * share * hours
