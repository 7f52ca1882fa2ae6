"""How throughput grows with the number of instances: speed-up and efficiency against the smallest size measured."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from traindyno.core.measurement.run_result import RunResult
from traindyno.core.statistics.estimates import Interval
from traindyno.core.suite.choices import Task
from traindyno.core.suite.processes import planned_batch_size
from traindyno.core.suite.series import find_series, label_series
from traindyno.core.suite.settings import Effect, settings_with
from traindyno.core.suite.suite import Cell, Suite
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.cell_trials import CellTrials, Noise, compare_cells, suite_trials
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
    """Cells that are equal but for their number of instances and what follows from it, the fewest first.

    ``cell`` stands for all of them, without what changes; its label names what varies between series.
    """

    cell: Cell
    points: tuple[ScalingPoint, ...]


def measure_scaling(suite: Suite, cells: Sequence[Cell], results: Sequence[RunResult]) -> tuple[ScalingSeries, ...]:
    """One series for each set of cells with at least two numbers of instances."""
    measured = {each.cell.cell_id: each for each in suite_trials(suite, cells, results) if each.measured}
    found = []
    for series in find_series(cells, suite.workload, following=suite.scaling.following):
        known = tuple(cell for cell in series.cells if cell.cell_id in measured)
        if len(known) > 1:
            found.append(replace(series, cells=known))
    return tuple(
        _series(cell, [measured[each.cell_id] for each in series.cells])
        for series, cell in zip(found, label_series(found), strict=True)
    )


def fit_all(
    suite: Suite, cells: Sequence[Cell], rows: Sequence[CellRow], samples_per_step: Mapping[str, int]
) -> tuple[ScalingFit, ...]:
    """A curve for each set of cells that differ in nothing but instances, loader workers and what follows from them.

    Then one for each set with the same global batch: a step does the same work on any number of instances. A set
    of task script has such steps if ``samples_per_step`` (cell id → samples) is the same in all of its cells.
    """
    timed = _time_all(suite, cells, rows)
    series = find_series(cells, suite.workload, following=suite.scaling.following, beside=["loader_workers"])
    sets = [[timed[cell.cell_id] for cell in each.cells if cell.cell_id in timed] for each in series]
    if suite.workload.task is Task.SCRIPT:
        batches = [{samples_per_step.get(each.time.cell_id) for each in group} for group in sets]
        fits = [_fit(group, _only(batch), suite) for group, batch in zip(sets, batches, strict=True)]
    else:
        fits = [_fit(group, None, suite) for group in sets]
        fits += [_fit(_best_by_size(group), batch, suite) for batch, group in _same_batch(timed.values(), suite)]
    return tuple(fit for fit in fits if fit is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timed:
    cell: Cell
    row: CellRow
    time: SizedTime


def _time_all(suite: Suite, cells: Sequence[Cell], rows: Sequence[CellRow]) -> dict[str, _Timed]:
    """Cell id → time, for cells with a measured rate."""
    by_id = {row.cell_id: row for row in rows}
    found = {}
    for cell in cells:
        row = by_id.get(cell.cell_id)
        time = _sized(cell, row, suite.workload.examples) if row else None
        if row and time:
            found[cell.cell_id] = _Timed(cell=cell, row=row, time=time)
    return found


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


def _only(values: set[int | None]) -> int | None:
    return next(iter(values)) if len(values) == 1 else None


def _same_batch(timed: Iterable[_Timed], suite: Suite) -> Iterator[tuple[int, list[_Timed]]]:
    """The sets of a built-in task's cells with the same global batch, however it is divided, with that batch."""
    by_batch: dict[int, dict[str, _Timed]] = {}
    for each in timed:
        if batch := planned_batch_size(each.cell.settings):
            by_batch.setdefault(batch, {})[each.time.cell_id] = each
    beside = ["loader_workers", *settings_with(Effect.BATCH)]
    for batch, found in by_batch.items():
        for series in find_series([each.cell for each in found.values()], suite.workload, beside=beside):
            yield batch, [found[cell.cell_id] for cell in series.cells]


def _best_by_size(group: Sequence[_Timed]) -> list[_Timed]:
    """The fastest way to divide the batch for each number of instances."""
    best: dict[tuple[int, int], _Timed] = {}
    for each in sorted(group, key=lambda each: each.time.seconds, reverse=True):
        best[each.time.instance_count, each.time.loader_workers] = each
    return sorted(best.values(), key=lambda each: each.time.instance_count)


def _fit(group: Sequence[_Timed], batch: int | None, suite: Suite) -> ScalingFit | None:
    """``batch``: the samples of a step, where all cells of the group have the same."""
    step = None
    if group and batch:
        price = group[0].row.usd_per_instance_hour
        step = StepWork(samples=batch, steps=suite.workload.examples / batch, usd_per_instance_hour=price)
    return fit_scaling([each.time for each in group], tolerance=suite.tolerance, step=step)


def _series(cell: Cell, trials: Sequence[CellTrials]) -> ScalingSeries:
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
    return ScalingSeries(cell=cell, points=tuple(points))
