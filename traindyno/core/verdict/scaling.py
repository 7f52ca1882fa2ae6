"""How throughput grows with the number of instances: speed-up and efficiency against the smallest size measured."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from traindyno.core.measurement.run_result import RunResult
from traindyno.core.statistics.estimates import Interval
from traindyno.core.suite.suite import Cell, Suite
from traindyno.core.verdict.cell_trials import CellTrials, Noise, compare_cells, suite_trials
from traindyno.core.verdict.quantity import projected_seconds, samples_per_second
from traindyno.slices.scaling.lab import find_series, label_series


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
    for series in find_series(cells, suite.workload):
        known = tuple(cell for cell in series.cells if cell.cell_id in measured)
        if len(known) > 1:
            found.append(replace(series, cells=known))
    return tuple(
        _series(cell, [measured[each.cell_id] for each in series.cells])
        for series, cell in zip(found, label_series(found), strict=True)
    )


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
