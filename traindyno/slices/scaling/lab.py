"""Rate and efficiency over each setting that has two numbers: instances, workers or samples.

A line joins cells that are equal in all else. Speed-up and efficiency are against the smallest
number of instances measured.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from traindyno.core.costs.quantity_text import number_text, seconds_text, share_text, usd_text
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.suite import Suite
from traindyno.core.verdict.cell_runs import CellRuns, group_runs
from traindyno.core.verdict.figure_table import build_figures
from traindyno.core.verdict.report_data import Report
from traindyno.core.verdict.verdict import Verdict
from traindyno.figures.estimates import Interval
from traindyno.figures.model import TrialModel, model_each_alone
from traindyno.figures.table import FigureColumn
from traindyno.report.charts.figure import View, draw_figure, draw_views
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
from traindyno.slices.scaling.series import (
    INSTANCES,
    axis_number,
    axis_text,
    find_axes,
    find_series,
    label_series,
)

#: A neighbour that gains less is no reason to pay for more.
LEAST_GAIN = 0.02
ONE_VALUE = "No two measured cells differ in one number only: there is no line to draw."
ONE_SIZE = "One number of instances was measured of equal cells: there is no efficiency to give."
COLUMNS = columns(
    "Cell",
    "# Instances",
    "# Samples/s",
    "# Speed-up",
    "# Efficiency, by rate",
    "# Efficiency, strong",
    "# Time",
    "# Cost",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingPoint:
    """Speed-up and efficiency of one cell of a series.

    ``speed_up`` is against the rate of the fewest instances; ``efficiency`` divides it by the
    instances' ratio. With the same batch per device this is the weak efficiency.
    ``strong_efficiency`` is computed from the whole workload's time, with all that is paid once:
    instances × time of the fewest ÷ instances × time. It is None where a time is unknown.
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
        runs.cell.cell_id: runs for runs in group_runs(suite, cells, results) if runs.measured
    }
    model = model_each_alone(build_figures([*measured.values()]))
    known = (
        replace(series, cells=tuple(cell for cell in series.cells if cell.cell_id in measured))
        for series in find_series(cells, suite.workload)
    )
    several = [series for series in known if len(series.cells) > 1]
    return tuple(
        _series(cell, [measured[member.cell_id] for member in series.cells], model)
        for series, cell in zip(several, label_series(several), strict=True)
    )


def _series(cell: Cell, sizes: Sequence[CellRuns], model: TrialModel) -> ScalingSeries:
    base = sizes[0]
    points = []
    for size in sizes:
        compared = model.compare(size.key, base.key, FigureColumn.SAMPLES_PER_SECOND)
        if compared is None:
            continue
        share = base.cell.settings.instance_count / size.cell.settings.instance_count
        interval = compared.interval if size is not base else None
        times = model.compare(size.key, base.key, FigureColumn.SECONDS)
        points.append(
            ScalingPoint(
                cell_id=size.cell.cell_id,
                instance_count=size.cell.settings.instance_count,
                speed_up=compared.ratio,
                efficiency=compared.ratio * share,
                strong_efficiency=share / times.ratio if times else None,
                efficiency_interval=interval
                and replace(interval, low=interval.low * share, high=interval.high * share),
            )
        )
    return ScalingSeries(cell=cell, points=tuple(points))


def draw_scaling(report: Report) -> Markup:
    series = measure_scaling(report.suite, report.cells, report.results)
    efficient = {point.cell_id: point for line in series for point in line.points}
    drawn = [
        (axis, rates, _lines(report, axis, efficiencies(efficient)))
        for axis in find_axes(report.cells, report.suite.workload)
        if (rates := _lines(report, axis, measured_rates(report.verdict)))
    ]
    views = [
        View(name=axis_text(axis), content=_axis(axis, rates, shares))
        for axis, rates, shares in drawn
    ]
    return element(
        "section",
        element("h2", "Scaling"),
        draw_views("scaling", views) if views else element("p", ONE_VALUE, class_="hint"),
        _table(report.verdict, series) if series else element("p", ONE_SIZE, class_="hint"),
        id="scaling",
    )


def measured_rates(verdict: Verdict) -> Mapping[str, tuple[float, Interval | None]]:
    """Samples per second of each cell."""
    return {
        row.cell_id: (rate.mean, rate.interval)
        for row in verdict.ranked_rows
        if (rate := row.samples_per_second)
    }


def efficiencies(
    points: Mapping[str, ScalingPoint],
) -> Mapping[str, tuple[float, Interval | None]]:
    return {
        cell_id: (point.efficiency, point.efficiency_interval) for cell_id, point in points.items()
    }


def _lines(
    report: Report, axis: str, values: Mapping[str, tuple[float, Interval | None]]
) -> list[Line]:
    """Lines of the series that have at least two points."""
    workload = report.suite.workload
    sized = {name for series in find_series(report.cells, workload) for name in series.following}
    series = [
        replace(candidate, cells=known)
        for candidate in find_series(report.cells, workload, axis)
        if len(known := tuple(cell for cell in candidate.cells if cell.cell_id in values)) > 1
    ]
    lines = []
    for line, named in zip(series, label_series(series, axis, sized), strict=True):
        points = tuple(
            Point(
                x=axis_number(cell, workload, axis) or 0.0,
                y=values[cell.cell_id][0],
                interval=values[cell.cell_id][1],
            )
            for cell in line.cells
        )
        lines.append(Line(label=named.label, curves=(points,)))
    return lines


def _axis(axis: str, rates: Sequence[Line], shares: Sequence[Line]) -> Markup:
    """The rate and, where cells differ in their instances too, the efficiency over one axis."""
    name = axis_text(axis)
    if axis == INSTANCES:
        rates = [replace(line, ideal=_ideal_ends(line.points)) for line in rates]
    note = "dots: measured"
    if axis == INSTANCES:
        note += "; dashed: ideal, in proportion to the fewest instances"
    return join(
        _pictures("Samples per second", "samples_per_second", name, rates, note),
        *(element("p", sentence) for sentence in saturation_sentences(name, rates)),
        _pictures("Scaling efficiency", "efficiency", name, shares, "against the fewest instances"),
    )


def _pictures(quantity: str, column: str, across: str, lines: Sequence[Line], note: str) -> Markup:
    figures = []
    for index, part in enumerate(divide_lines(lines), 1):
        title = f"{quantity} over {across}{f', part {index}' if index > 1 else ''}"
        ideal = ("ideal_samples_per_second",) if part[0].ideal else ()
        data = PlotData(
            name=f"{column}-{across.replace(' ', '_')}{f'-{index}' if index > 1 else ''}",
            header=("series", across, column, *ideal),
            rows=[
                (line.label, point.x, point.y, *(_ideal(line.points[0], point.x) for _ in ideal))
                for line in part
                for point in line.points
            ],
        )
        picture = draw_lines(part, across_name=across, title=title)
        figures.append(draw_figure(title, picture, data=data, note=note))
    return join(*figures)


def saturation_sentences(across: str, lines: Sequence[Line]) -> Iterator[str]:
    """Sentences on the value from which more of it gains little, between measured neighbours.

    One sentence names all lines of which it is true.
    """
    least = f"{100 * LEAST_GAIN:g} %"
    sentences: dict[str, list[str]] = {}
    for line in lines:
        begin = saturation(line.points)
        said = (
            f"More {across} still gained at least {least} at {line.points[-1].x:g}, "
            "the most measured"
            if begin is None
            else f"From {begin:g} {across} on, more gains less than {least}"
        )
        sentences.setdefault(said, []).append(line.label)
    for said, labels in sentences.items():
        yield f"{said}: {'; '.join(labels)}." if len(lines) > 1 else f"{said}."


def saturation(points: Sequence[Point]) -> float | None:
    """The first value from which its neighbours gain little; None where the last neighbour still
    gains.
    """
    begin = None
    for left, right in reversed([*pairwise(points)]):
        if right.y >= (1 + LEAST_GAIN) * left.y:
            break
        begin = left.x
    return begin


def _ideal(first: Point, instances: float) -> float:
    """The rate that grows in proportion to the instances, from the smallest size on."""
    return first.y * instances / first.x


def _ideal_ends(points: Sequence[Point]) -> tuple[tuple[float, float], ...]:
    first = points[0]
    last = points[-1]
    return ((first.x, first.y), (last.x, _ideal(first, last.x)))


def _table(verdict: Verdict, series: Sequence[ScalingSeries]) -> Markup:
    return draw_table(
        COLUMNS,
        [_cells_of(verdict, point) for line in series for point in line.points],
        caption="Relative to the fewest instances of equal cells. By rate: speed-up ÷ ratio of "
        "instances. Strong: the whole workload's time, with all that is paid once.",
    )


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
