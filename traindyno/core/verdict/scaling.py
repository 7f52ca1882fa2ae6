"""How throughput grows with the number of instances: speed-up and efficiency against the fewest that were measured."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from traindyno.core.documents.stored import to_document
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.measurement.statistics import Interval
from traindyno.core.suite.suite import Cell
from traindyno.core.verdict.cell_trials import CellTrials, Noise, compare_cells, group_trials
from traindyno.core.verdict.quantity import samples_per_second


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingPoint:
    """``speed_up`` is against the rate of the fewest instances; ``efficiency`` divides it by the instances' ratio."""

    cell_id: str
    instance_count: int
    speed_up: float
    efficiency: float
    efficiency_interval: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingSeries:
    """Cells that differ in nothing but their number of instances, the fewest first."""

    points: tuple[ScalingPoint, ...]


def measure_scaling(cells: Sequence[Cell], results: Sequence[RunResult]) -> tuple[ScalingSeries, ...]:
    """One series for each set of cells with two numbers of instances or more."""
    measured = [each for each in group_trials(cells, results) if each.measured]
    series: dict[str, list[CellTrials]] = {}
    for each in sorted(measured, key=lambda each: each.cell.settings.instance_count):
        series.setdefault(_all_but_its_size(each.cell), []).append(each)
    return tuple(_series(trials) for trials in series.values() if len(trials) > 1)


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
        points.append(
            ScalingPoint(
                cell_id=each.cell.cell_id,
                instance_count=each.cell.settings.instance_count,
                speed_up=compared.ratio,
                efficiency=compared.ratio * share,
                efficiency_interval=interval
                and replace(interval, low=interval.low * share, high=interval.high * share),
            )
        )
    return ScalingSeries(points=tuple(points))
