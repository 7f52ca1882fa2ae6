"""How throughput grows with the number of instances: speed-up and efficiency against the smallest
size measured.

A series has the cells that are equal in all but their number of instances and what follows from it.

An argument of a script follows the size if it is a number and takes exactly one value for each
size, in cells that are equal in all else: ``max_steps`` where each size trains on as many examples.
If several arguments could follow, but not together, those whose values recur at the fewest sizes
follow; the others are axes of their own. Settings never follow, nor do arguments whose values are
only 0 and 1: these switch something, such as a precision.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from traindyno.core.costs.quantity_text import number_text, seconds_text, share_text, usd_text
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.statistics.estimates import Interval
from traindyno.core.suite.arguments import arguments_of, number_of
from traindyno.core.suite.cells import label_cells
from traindyno.core.suite.settings import Settings
from traindyno.core.suite.suite import Cell, Suite
from traindyno.core.suite.suite_file import suite_converter
from traindyno.core.suite.workload import Workload
from traindyno.core.verdict.cell_trials import CellTrials, Noise, compare_cells, suite_trials
from traindyno.core.verdict.quantity import projected_seconds, samples_per_second
from traindyno.core.verdict.report_data import Report
from traindyno.core.verdict.verdict import Verdict
from traindyno.report.charts.figure import draw_figure
from traindyno.report.charts.line_chart import Line, Point, divide_lines, draw_lines
from traindyno.report.markup import (
    Markup,
    PlotData,
    columns,
    draw_table,
    element,
    estimate_cell,
    join,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """``cells`` from the fewest instances.

    ``following``: the arguments that change with their number.
    """

    cells: tuple[Cell, ...]
    following: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Point:
    """``numbers``: the arguments that are numbers."""

    cell: Cell
    numbers: dict[str, float]

    @property
    def size(self) -> int:
        return self.cell.settings.instance_count


def find_series(cells: Sequence[Cell], workload: Workload) -> tuple[Series, ...]:
    """Each cell is in one series; their order is that of the cells."""
    equal: dict[str, list[_Point]] = {}
    for cell in cells:
        arguments = arguments_of(cell, workload)
        numbers = {
            name: number
            for name, value in arguments.items()
            if (number := number_of(value)) is not None
        }
        texts = {name: value for name, value in arguments.items() if name not in numbers}
        settings = suite_converter().unstructure(_of_any_size(cell.settings))
        rest = json.dumps([settings, texts, sorted(numbers)], sort_keys=True)
        equal.setdefault(rest, []).append(_Point(cell=cell, numbers=numbers))
    return tuple(series for points in equal.values() for series in _divide(points))


def _divide(points: Sequence[_Point]) -> Iterator[Series]:
    names = sorted(points[0].numbers)
    follow = _followers(points, names)
    for group in _group(points, [name for name in names if name not in follow]).values():
        ordered = sorted(group, key=lambda point: point.size)
        yield Series(
            cells=tuple(point.cell for point in ordered),
            following=tuple(
                name for name in follow if len({point.numbers[name] for point in group}) > 1
            ),
        )


def _followers(points: Sequence[_Point], names: Sequence[str]) -> list[str]:
    found: list[str] = []
    candidates = [name for name in names if not {point.numbers[name] for point in points} <= {0, 1}]
    for name in sorted(candidates, key=lambda name: (_recurrence(points, name), name)):
        others = [each for each in names if each != name and each not in found]
        if all(
            len({point.size for point in group}) == len(group)
            for group in _group(points, others).values()
        ):
            found.append(name)
    return found


def _recurrence(points: Sequence[_Point], name: str) -> float:
    """The mean number of sizes at which a value of the argument occurs."""
    return len({(point.size, point.numbers[name]) for point in points}) / len(
        {point.numbers[name] for point in points}
    )


def _group(points: Sequence[_Point], names: Sequence[str]) -> dict[tuple[float, ...], list[_Point]]:
    """Values of these arguments → the points that have them."""
    groups: dict[tuple[float, ...], list[_Point]] = {}
    for point in points:
        groups.setdefault(tuple(point.numbers[name] for name in names), []).append(point)
    return groups


def _of_any_size(settings: Settings) -> Settings:
    return replace(settings, instance_count=Settings(instance=settings.instance).instance_count)


def label_series(series: Sequence[Series]) -> tuple[Cell, ...]:
    """One cell for each series, without what changes along it.

    Its label names what varies between the series.
    """
    cells = []
    for each in series:
        first = each.cells[0]
        given = {
            name: value
            for name, value in first.hyperparameters.items()
            if name not in each.following
        }
        cells.append(replace(first, hyperparameters=given, settings=_of_any_size(first.settings)))
    return label_cells(cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingPoint:
    """``speed_up`` is against the rate of the fewest instances; ``efficiency`` divides it by the
    instances' ratio.

    With the same batch per device this is the weak efficiency. ``strong_efficiency`` is that of the
    whole workload's time, with all that is paid once: instances × time of the fewest ÷ instances ×
    time. None where a time is unknown.
    """

    cell_id: str
    instance_count: int
    speed_up: float
    efficiency: float
    efficiency_interval: Interval | None
    strong_efficiency: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingSeries:
    """Cells that are equal but for their number of instances and what follows from it, the fewest
    first.

    ``cell`` stands for all of them, without what changes; its label names what varies between
    series.
    """

    cell: Cell
    points: tuple[ScalingPoint, ...]


def measure_scaling(
    suite: Suite, cells: Sequence[Cell], results: Sequence[RunResult]
) -> tuple[ScalingSeries, ...]:
    """One series for each set of cells with at least two numbers of instances."""
    measured = {
        each.cell.cell_id: each for each in suite_trials(suite, cells, results) if each.measured
    }
    known = (
        replace(series, cells=tuple(cell for cell in series.cells if cell.cell_id in measured))
        for series in find_series(cells, suite.workload)
    )
    found = [series for series in known if len(series.cells) > 1]
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


COLUMNS = columns(
    *(
        "Cell",
        "# Instances",
        "# Samples/s",
        "# Speed-up",
        "# Efficiency, by rate",
        "# Efficiency, strong",
    ),
    *("# Time", "# Cost"),
)


def draw_scaling(report: Report) -> Markup | None:
    series = measure_scaling(report.suite, report.cells, report.results)
    if not series:
        return None
    lines = [line for line in (_line(report, each) for each in series) if len(line.points) > 1]
    return element(
        "section",
        element("h2", "Scaling"),
        *(_rate(part, index) for index, part in enumerate(divide_lines(lines))),
        draw_table(
            COLUMNS,
            [_cells_of(report.verdict, point) for each in series for point in each.points],
            caption="Relative to the fewest instances of equal cells. By rate: speed-up ÷ ratio of "
            "instances. Strong: the whole workload's time, with all that is paid once.",
        ),
        id="scaling",
    )


def _rate(lines: Sequence[Line], index: int) -> Markup:
    title = f"Samples per second over instances{f', part {index + 1}' if index else ''}"
    data = PlotData(
        name=f"scaling{f'-{index + 1}' if index else ''}",
        header=("series", "instances", "samples_per_second", "ideal_samples_per_second"),
        rows=[
            (line.label, point.x, point.y, _ideal(line.points[0], point.x))
            for line in lines
            for point in line.points
        ],
    )
    picture = draw_lines(lines, across_name="instances", title=title)
    note = "dots: measured; dashed: ideal, in proportion to the fewest instances"
    return draw_figure(title, picture, data=data, note=note)


def _ideal(first: Point, instances: float) -> float:
    """The rate that grows in proportion to the instances, from the smallest size on."""
    return first.y * instances / first.x


def _line(report: Report, series: ScalingSeries) -> Line:
    points = tuple(
        Point(x=point.instance_count, y=rate.mean, interval=rate.interval)
        for point in series.points
        if (rate := report.verdict.row(point.cell_id).samples_per_second)
    )
    ideal = tuple(
        (point.x, _ideal(points[0], point.x)) for point in (*points[:1], *points[1:][-1:])
    )
    return Line(label=series.cell.label, curves=(points,), ideal=ideal)


def _cells_of(verdict: Verdict, point: ScalingPoint) -> list[str | None]:
    row = verdict.row(point.cell_id)
    interval = point.efficiency_interval
    spread = f"{interval.low * 100:.1f} to {interval.high * 100:.1f} %" if interval else None
    return [
        row.label,
        str(point.instance_count),
        estimate_cell(row.samples_per_second, number_text),
        f"{number_text(point.speed_up)} ×",
        join(share_text(point.efficiency), element("small", spread) if spread else None),
        share_text(point.strong_efficiency),
        estimate_cell(row.seconds, seconds_text),
        estimate_cell(row.usd, usd_text),
    ]
