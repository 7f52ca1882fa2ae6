"""What a goal minimises, and which cells meet its limit."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from traindyno.core.costs.prices import SECONDS_PER_HOUR
from traindyno.core.suite.goal import Goal
from traindyno.core.verdict.cell_quality import CellQuality
from traindyno.core.verdict.cell_row import CellRow
from traindyno.figures.estimates import Estimate
from traindyno.figures.table import FigureColumn

CENTS = Decimal("0.0001")


class Metric(StrEnum):
    """Instance hours replace cost if no price is known and all cells use one instance type.

    The first three are for the whole workload, the others for the work until the goal's target is
    reached.
    """

    SECONDS = "seconds"
    USD = "usd"
    INSTANCE_HOURS = "instance_hours"
    SECONDS_TO_TARGET = "seconds_to_target"
    USD_TO_TARGET = "usd_to_target"

    @property
    def column(self) -> FigureColumn:
        """The column of the table of figures with its values."""
        return FigureColumn(self.value)

    @property
    def is_time(self) -> bool:
        return self in (Metric.SECONDS, Metric.SECONDS_TO_TARGET)

    @property
    def is_to_target(self) -> bool:
        return self in (Metric.SECONDS_TO_TARGET, Metric.USD_TO_TARGET)

    @property
    def is_money(self) -> bool:
        return self in (Metric.USD, Metric.USD_TO_TARGET)


def estimate_of(row: CellRow, metric: Metric) -> Estimate | None:
    match metric:
        case Metric.SECONDS:
            return row.seconds
        case Metric.USD:
            return row.usd
        case Metric.INSTANCE_HOURS:
            return row.instance_hours
        case Metric.SECONDS_TO_TARGET:
            return row.part(CellQuality).seconds
        case Metric.USD_TO_TARGET:
            return row.part(CellQuality).usd


def choose_metric(goal: Goal, measured: Sequence[tuple[str, bool]]) -> Metric:
    """The metric by which the goal compares cells.

    ``measured`` has the instance type of each measured cell, and whether its cost is known.
    """
    if goal.target is not None:
        return Metric.SECONDS_TO_TARGET if goal.is_time else Metric.USD_TO_TARGET
    if goal.is_time:
        return Metric.SECONDS
    is_priced = any(is_known for _, is_known in measured)
    is_one_type = len({instance for instance, _ in measured}) == 1
    return Metric.INSTANCE_HOURS if not is_priced and is_one_type else Metric.USD


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """The price of ``instance`` at which a cell costs as much as the recommended one."""

    cell_id: str
    instance: str
    usd_per_instance_hour: Decimal
    now_usd_per_instance_hour: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossover:
    """The amount of work below which a cell is ahead of the recommended one: it has less overhead,
    and more for each sample.
    """

    cell_id: str
    examples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CellLine:
    """A cell's figure over the amount of work, in the metric's unit."""

    fixed: float
    per_example: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """Prices and amounts of work at which a cell that the recommended one beats would be as
    good.
    """

    break_evens: tuple[BreakEven, ...] = ()
    crossovers: tuple[Crossover, ...] = ()


def find_sensitivity(
    best: CellRow | None, beaten: Sequence[CellRow], metric: Metric, *, examples: int
) -> Sensitivity:
    if best is None:
        return Sensitivity()
    break_evens = (find_break_even(best, row) for row in beaten if metric is Metric.USD)
    crossovers = (find_crossover(best, row, metric=metric, examples=examples) for row in beaten)
    return Sensitivity(
        break_evens=tuple(filter(None, break_evens)), crossovers=tuple(filter(None, crossovers))
    )


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
    recommended: CellRow, other: CellRow, *, metric: Metric, examples: int
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


def cell_line(row: CellRow, metric: Metric, examples: int) -> CellLine | None:
    """From the overhead to the cell's figure for the suite's work: failures, interruptions and the
    full run's schedule are in the slope. Time is wall clock; cost and hours are training time.
    """
    total = estimate_of(row, metric)
    weight = _per_second(row, metric)
    overhead = (
        row.time.overhead_seconds
        if metric is Metric.SECONDS
        else row.time.training_overhead_seconds
    )
    if total is None or weight is None or overhead is None:
        return None
    fixed = overhead * weight
    return (
        CellLine(fixed=fixed, per_example=(total.mean - fixed) / examples)
        if fixed < total.mean
        else None
    )


def _per_second(row: CellRow, metric: Metric) -> float | None:
    match metric:
        case Metric.SECONDS:
            return 1.0
        case Metric.INSTANCE_HOURS:
            return row.instance_count / SECONDS_PER_HOUR
        case Metric.USD:
            price = row.usd_per_instance_hour
            share = row.time.billable_share
            if price is None or share is None:
                return None
            return float(price) * share * row.instance_count / SECONDS_PER_HOUR
        case Metric.SECONDS_TO_TARGET | Metric.USD_TO_TARGET:
            return None  # the work is not measured in examples
