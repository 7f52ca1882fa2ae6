"""Scaling over instances, with the cost of each size."""

from collections.abc import Iterator, Mapping, Sequence

from traindyno.core.costs.quantity_text import number_text, seconds_text, share_text, usd_text
from traindyno.core.verdict.report_data import Report
from traindyno.core.verdict.scaling import ScalingPoint, ScalingSeries, measure_scaling
from traindyno.core.verdict.verdict import Verdict
from traindyno.report.charts.figure import MOST_VIEWS, View, draw_figure, draw_views
from traindyno.report.charts.line_chart import Line, MeasuredPoint, Part, divide_lines, draw_lines
from traindyno.report.charts.plot import Unit
from traindyno.report.markup import Column, Markup, PlotData, draw_table, element, estimate_cell, join

PERCENT = Unit(size=0.01, after=" %")
COLUMNS = [
    Column(heading="Cell"),
    Column(heading="Instances", is_number=True),
    Column(heading="Samples/s", is_number=True),
    Column(heading="Speed-up", is_number=True),
    Column(heading="Efficiency, by rate", is_number=True),
    Column(heading="Efficiency, strong", is_number=True),
    Column(heading="Time", is_number=True),
    Column(heading="Cost", is_number=True),
]


def draw_scaling(report: Report) -> Markup | None:
    series = measure_scaling(report.suite, report.cells, report.results)
    if not series:
        return None
    rows = [_row(report.verdict, point) for each in series for point in each.points]
    lines = [line for line in (_line(report, each) for each in series) if len(line.points) > 1]
    views = [*_views(lines, series)] if lines else []
    return element(
        "section",
        element("h2", "Scaling"),
        element("p", f"The first {MOST_VIEWS} of {len(views)} pictures.", class_="hint")
        if len(views) > MOST_VIEWS
        else None,
        draw_views("scaling", views) if views else None,
        _table(rows),
        id="scaling",
    )


def _table(rows: Sequence[Sequence[str | None]]) -> Markup | None:
    if not rows:
        return None
    return draw_table(
        COLUMNS,
        rows,
        caption="Relative to the fewest instances of equal cells. By rate: speed-up ÷ ratio of instances. Strong: the "
        "whole workload's time, with all that is paid once.",
    )


def _views(lines: Sequence[Line], series: Sequence[ScalingSeries]) -> Iterator[View]:
    """The rate and the efficiency of each part of the lines."""
    points = {each.cell.label: each.points for each in series}
    for index, part in enumerate(divide_lines(lines)):
        suffix = f"-{index + 1}" if index else ""
        yield View(name=part.name, content=join(_rate(part, suffix), _efficiency(part, points, suffix)))


def _rate(part: Part, suffix: str) -> Markup:
    title = _title("Samples per second over instances", part)
    note = "dots: measured; dashed: ideal, in proportion to the fewest instances"
    data = PlotData(
        name=f"scaling{suffix}",
        header=("series", "instances", "samples_per_second", "ideal_samples_per_second"),
        rows=[
            (line.label, point.x, point.y, _ideal(line.points[0], point.x))
            for line in part.lines
            for point in line.points
        ],
    )
    picture = draw_lines(part.lines, across_name="instances", title=title)
    return draw_figure(title, picture, data=data, note=note)


def _efficiency(part: Part, points: Mapping[str, Sequence[ScalingPoint]], suffix: str) -> Markup:
    title = _title("Scaling efficiency over instances", part)
    lines = [
        Line(
            cell=line.cell,
            points=tuple(
                MeasuredPoint(x=point.instance_count, y=point.efficiency, interval=point.efficiency_interval)
                for point in points[line.label]
            ),
        )
        for line in part.lines
    ]
    data = PlotData(
        name=f"scaling-efficiency{suffix}",
        header=("series", "instances", "efficiency"),
        rows=[(line.label, point.x, point.y) for line in lines for point in line.points],
    )
    picture = draw_lines(lines, across_name="instances", title=title, unit=PERCENT)
    note = "samples per second and instance ÷ those of the fewest instances"
    return draw_figure(title, picture, data=data, note=note)


def _title(what: str, part: Part) -> str:
    return f"{what}, {part.name}" if part.name else what


def _ideal(first: MeasuredPoint, instances: float) -> float:
    """The rate that grows in proportion to the instances, from the smallest size on."""
    return first.y * instances / first.x


def _line(report: Report, series: ScalingSeries) -> Line:
    rates = {row.cell_id: row.samples_per_second for row in report.verdict.rows}
    points = tuple(
        MeasuredPoint(x=point.instance_count, y=rate.mean, interval=rate.interval)
        for point in series.points
        if (rate := rates[point.cell_id])
    )
    ideal = tuple((point.x, _ideal(points[0], point.x)) for point in (*points[:1], *points[1:][-1:]))
    return Line(cell=series.cell, points=points, ideal=ideal)


def _row(verdict: Verdict, point: ScalingPoint) -> list[str | None]:
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
