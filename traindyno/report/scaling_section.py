"""Scaling over instances, with the cost of each size."""

from collections.abc import Sequence

from traindyno.core.costs.quantity_text import number_text, seconds_text, share_text, usd_text
from traindyno.core.verdict.report_data import Report
from traindyno.core.verdict.scaling import ScalingPoint, ScalingSeries, measure_scaling
from traindyno.core.verdict.verdict import Verdict
from traindyno.report.charts.figure import draw_figure
from traindyno.report.charts.line_chart import Line, Point, divide_lines, draw_lines
from traindyno.report.markup import Markup, PlotData, columns, draw_table, element, estimate_cell, join

COLUMNS = columns(
    *("Cell", "# Instances", "# Samples/s", "# Speed-up", "# Efficiency, by rate", "# Efficiency, strong"),
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
            [_row(report.verdict, point) for each in series for point in each.points],
            caption="Relative to the fewest instances of equal cells. By rate: speed-up ÷ ratio of instances. Strong: "
            "the whole workload's time, with all that is paid once.",
        ),
        id="scaling",
    )


def _rate(lines: Sequence[Line], index: int) -> Markup:
    title = f"Samples per second over instances{f', part {index + 1}' if index else ''}"
    data = PlotData(
        name=f"scaling{f'-{index + 1}' if index else ''}",
        header=("series", "instances", "samples_per_second", "ideal_samples_per_second"),
        rows=[
            (line.label, point.x, point.y, _ideal(line.points[0], point.x)) for line in lines for point in line.points
        ],
    )
    picture = draw_lines(lines, across_name="instances", title=title)
    note = "dots: measured; dashed: ideal, in proportion to the fewest instances"
    return draw_figure(title, picture, data=data, note=note)


def _ideal(first: Point, instances: float) -> float:
    """The rate that grows in proportion to the instances, from the smallest size on."""
    return first.y * instances / first.x


def _line(report: Report, series: ScalingSeries) -> Line:
    rates = {row.cell_id: row.samples_per_second for row in report.verdict.rows}
    points = tuple(
        Point(x=point.instance_count, y=rate.mean, interval=rate.interval)
        for point in series.points
        if (rate := rates[point.cell_id])
    )
    ideal = tuple((point.x, _ideal(points[0], point.x)) for point in (*points[:1], *points[1:][-1:]))
    return Line(label=series.cell.label, curves=(points,), ideal=ideal)


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
