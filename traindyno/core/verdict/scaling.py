"""How throughput grows with the number of instances: speed-up and efficiency against the smallest size measured."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from traindyno.core.documents.stored import to_document
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.measurement.statistics import Interval
from traindyno.core.suite.processes import planned_batch_size
from traindyno.core.suite.suite import Cell
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.cell_trials import CellTrials, Noise, compare_cells, group_trials
from traindyno.core.verdict.quantity import projected_seconds, samples_per_second
from traindyno.core.verdict.scaling_fit import ScalingFit, SizedTime, StepWork, fit_scaling


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingPoint:
    """``speed_up`` is against the rate of the fewest instances; ``efficiency`` divides it by the instances' ratio.

    With the same batch per device this is the weak efficiency. ``strong_efficiency`` is that of the whole workload's
    time, with all that is paid once: instances × time of the fewest ÷ instances × time. None where a time is unknown.
    """

    cell_id: str
    instance_count: int
    speed_up: float
    efficiency: float
    efficiency_interval: Interval | None
    strong_efficiency: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingSeries:
    """Cells that differ in nothing but their number of instances, the fewest first."""

    points: tuple[ScalingPoint, ...]


def measure_scaling(cells: Sequence[Cell], results: Sequence[RunResult]) -> tuple[ScalingSeries, ...]:
    """One series for each set of cells with at least two numbers of instances."""
    measured = [each for each in group_trials(cells, results) if each.measured]
    series: dict[str, list[CellTrials]] = {}
    for each in sorted(measured, key=lambda each: each.cell.settings.instance_count):
        series.setdefault(_all_but_its_size(each.cell), []).append(each)
    return tuple(_series(trials) for trials in series.values() if len(trials) > 1)


def fit_all(
    cells: Sequence[Cell], rows: Sequence[CellRow], *, examples: int, tolerance: float
) -> tuple[ScalingFit, ...]:
    """A curve for each set of cells that differ in nothing but instances and loader workers.

    Then one for each set with the same global batch: a step does the same work on any number of instances.
    """
    by_id = {row.cell_id: row for row in rows}
    timed = [
        _Timed(cell=cell, row=row, time=time)
        for cell in cells
        if (row := by_id.get(cell.cell_id)) is not None and (time := _sized(cell, row, examples)) is not None
    ]
    growing = (fit_scaling([each.time for each in group], tolerance=tolerance) for group in _groups(timed, _weak_key))
    divided = (
        fit_scaling([each.time for each in _best_by_size(group)], tolerance=tolerance, step=_step(group, examples))
        for group in _groups([each for each in timed if planned_batch_size(each.cell.settings)], _strong_key)
    )
    return tuple(fit for fit in (*growing, *divided) if fit is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timed:
    cell: Cell
    row: CellRow
    time: SizedTime


def _sized(cell: Cell, row: CellRow, examples: int) -> SizedTime | None:
    if row.samples_per_second is None:
        return None
    return SizedTime(
        cell_id=cell.cell_id,
        instance_count=cell.settings.instance_count,
        loader_workers=cell.settings.loader_workers,
        seconds=examples / row.samples_per_second.mean,
        variation=row.samples_per_second.variation,
    )


def _groups(timed: Sequence[_Timed], key_of: Callable[[Cell], str]) -> list[list[_Timed]]:
    groups: dict[str, list[_Timed]] = {}
    for each in timed:
        groups.setdefault(key_of(each.cell), []).append(each)
    return list(groups.values())


def _weak_key(cell: Cell) -> str:
    return _all_but_its_size(replace(cell, settings=replace(cell.settings, loader_workers=0)))


def _strong_key(cell: Cell) -> str:
    """Equal for cells with the same global batch, however it is divided."""
    undivided = replace(cell.settings, loader_workers=0, batch_size_per_device=1, gradient_accumulation_steps=1)
    return f"{planned_batch_size(cell.settings)} {_all_but_its_size(replace(cell, settings=undivided))}"


def _best_by_size(group: Sequence[_Timed]) -> list[_Timed]:
    """For each number of instances, the fastest of several ways to divide the batch."""
    best: dict[tuple[int, int], _Timed] = {}
    for each in sorted(group, key=lambda each: each.time.seconds, reverse=True):
        best[each.time.instance_count, each.time.loader_workers] = each
    return sorted(best.values(), key=lambda each: each.time.instance_count)


def _step(group: Sequence[_Timed], examples: int) -> StepWork:
    samples = planned_batch_size(group[0].cell.settings)
    assert samples is not None, "only cells with a known global batch are grouped by it"
    return StepWork(samples=samples, steps=examples / samples, usd_per_instance_hour=group[0].row.usd_per_instance_hour)


def _all_but_its_size(cell: Cell) -> str:
    settings = to_document(replace(cell.settings, instance_count=1))
    return json.dumps([settings, cell.hyperparameters], sort_keys=True, default=str)


def _series(trials: Sequence[CellTrials]) -> ScalingSeries:
    base = trials[0]
    points = []
    for each in trials:
        compared = compare_cells(each, base, samples_per_second, Noise())
        if compared is None:
            continue
        share = base.cell.settings.instance_count / each.cell.settings.instance_count
        interval = compared.interval if each is not base else None
        times = compare_cells(each, base, projected_seconds, Noise())
        points.append(
            ScalingPoint(
                cell_id=each.cell.cell_id,
                instance_count=each.cell.settings.instance_count,
                speed_up=compared.ratio,
                efficiency=compared.ratio * share,
                strong_efficiency=share / times.ratio if times else None,
                efficiency_interval=interval
                and replace(interval, low=interval.low * share, high=interval.high * share),
            )
        )
    return ScalingSeries(points=tuple(points))
