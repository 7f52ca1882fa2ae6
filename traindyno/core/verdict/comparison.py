"""Two executions of the same work side by side: what changed, by how much, and what else differs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from traindyno.core.costs.hazard import observe_hazards
from traindyno.core.errors import TraindynoError
from traindyno.core.measurement.loss_parity import LossParity, check_loss_parities
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.statistics.estimates import Comparison
from traindyno.core.statistics.many_comparisons import SIGNIFICANCE, adjust_by_holm
from traindyno.core.suite.suite import Cell
from traindyno.core.verdict.cell_row import CellRow, build_rows
from traindyno.core.verdict.cell_trials import CellTrials, Noise, compare_cells, measure_noise, suite_trials
from traindyno.core.verdict.confounds import Difference
from traindyno.core.verdict.execution_record import ExecutionRecord
from traindyno.core.verdict.quantity import Quantity, projected_seconds, projected_usd, samples_per_second
from traindyno.core.verdict.record_differences import environment_differences, running_differences, work_differences


class NotComparable(TraindynoError):
    """The two executions did not do the same work, or have no cell in common."""


class Change(StrEnum):
    FASTER = "faster"
    SLOWER = "slower"
    NO_DETECTABLE_DIFFERENCE = "no_detectable_difference"
    TOO_FEW_TRIALS = "too_few_trials"
    NOT_MEASURED = "not_measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class CellChange:
    """Comparisons are second ÷ first; ``change`` is the rate's, all cells taken together (Holm)."""

    label: str
    first: CellRow
    second: CellRow
    rate: Comparison | None
    seconds: Comparison | None
    usd: Comparison | None
    parity: LossParity | None
    change: Change


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionComparison:
    """``only_first`` and ``only_second``: labels of cells that only one of the executions has."""

    first_id: str
    second_id: str
    examples: int
    cells: tuple[CellChange, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    running: tuple[Difference, ...]
    environment: tuple[Difference, ...]
    is_simulated: bool


def compare_executions(first: ExecutionRecord, second: ExecutionRecord) -> ExecutionComparison:
    """Raises NotComparable if the executions did not do the same work or share no cell."""
    _check_work(first, second)
    shared = _shared_cells(first, second)
    if not shared:
        raise NotComparable(
            f"{first.execution_id} and {second.execution_id} have no cell in common: the first has"
            f" {_labels(first.cells)}, the second {_labels(second.cells)}"
        )
    trials = _group_both(first, second, shared)
    known = {cell.cell_id for pair in shared for cell in pair}
    return ExecutionComparison(
        first_id=first.execution_id,
        second_id=second.execution_id,
        examples=first.suite.workload.examples,
        cells=_compare_cells(trials[0], trials[1]),
        only_first=tuple(cell.label for cell in first.cells if cell.cell_id not in known),
        only_second=tuple(cell.label for cell in second.cells if cell.cell_id not in known),
        running=running_differences(first, second),
        environment=environment_differences(first.results, second.results),
        is_simulated=any(result.is_simulated for result in (*first.results, *second.results)),
    )


def _group_both(
    first: ExecutionRecord, second: ExecutionRecord, shared: Sequence[tuple[Cell, Cell]]
) -> list[Sequence[CellTrials]]:
    """Both with the rates at which capacity failed over all their runs: a rate is of a type, not of an execution."""
    both = (first, second)
    counted = [result for each in both for result in each.results]
    hazards = observe_hazards(counted, {**first.suite.pricing.spot, **second.suite.pricing.spot})
    return [
        suite_trials(each.suite, cells, _own_results(each), hazards=hazards)
        for each, cells in zip(both, zip(*shared, strict=True), strict=True)
    ]


def _check_work(first: ExecutionRecord, second: ExecutionRecord) -> None:
    found = work_differences(first, second)
    if found:
        named = "; ".join(f"{each.name} is {each.first} in the first and {each.second} in the second" for each in found)
        raise NotComparable(f"{first.execution_id} and {second.execution_id} did not do the same work: {named}")


def _labels(cells: Sequence[Cell]) -> str:
    return "; ".join(cell.label for cell in cells)


def _own_results(record: ExecutionRecord) -> list[RunResult]:
    """Results under the id of the execution that they are compared for: no block has trials of both."""
    return [replace(each, run=replace(each.run, execution_id=record.execution_id)) for each in record.results]


def _shared_cells(first: ExecutionRecord, second: ExecutionRecord) -> list[tuple[Cell, Cell]]:
    others = {_configuration(cell): cell for cell in second.cells}
    return [(cell, others[key]) for cell in first.cells if (key := _configuration(cell)) in others]


def _configuration(cell: Cell) -> tuple[object, ...]:
    return cell.settings, tuple(sorted(cell.hyperparameters.items()))


def _compare_cells(first: Sequence[CellTrials], second: Sequence[CellTrials]) -> tuple[CellChange, ...]:
    rows = list(zip(build_rows(first, Noise()), build_rows(second, Noise()), strict=True))
    rates, seconds, usd = (
        _compare_all(first, second, quantity) for quantity in (samples_per_second, projected_seconds, projected_usd)
    )
    adjusted = iter(adjust_by_holm([rate.p for rate in rates if rate and rate.p is not None]))
    return tuple(
        CellChange(
            label=max((row.label for row in rows[index]), key=len),
            first=rows[index][0],
            second=rows[index][1],
            rate=rate,
            seconds=seconds[index],
            usd=usd[index],
            parity=_parity(first[index], second[index]),
            change=_change(rate, next(adjusted) if rate and rate.p is not None else None),
        )
        for index, rate in enumerate(rates)
    )


def _compare_all(
    first: Sequence[CellTrials], second: Sequence[CellTrials], quantity: Quantity
) -> list[Comparison | None]:
    noise = measure_noise((*first, *second), quantity)
    return [compare_cells(new, old, quantity, noise) for old, new in zip(first, second, strict=True)]


def _parity(first: CellTrials, second: CellTrials) -> LossParity | None:
    return check_loss_parities([first.measured, second.measured])[0] if first.measured and second.measured else None


def _change(rate: Comparison | None, adjusted_p: float | None) -> Change:
    if rate is None:
        return Change.NOT_MEASURED
    if adjusted_p is None:
        return Change.TOO_FEW_TRIALS
    if adjusted_p >= SIGNIFICANCE:
        return Change.NO_DETECTABLE_DIFFERENCE
    return Change.FASTER if rate.ratio > 1 else Change.SLOWER
