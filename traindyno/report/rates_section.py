"""Samples per second over one setting or argument that is a number, such as the loader workers."""

from collections.abc import Iterator

from traindyno.core.suite.series import SIZE, axis_value, find_series, label_series
from traindyno.core.suite.settings import HYPERPARAMETER_PREFIX, Effect, settings_with
from traindyno.core.verdict.axes import find_axes
from traindyno.core.verdict.report_data import Report
from traindyno.report.charts.figure import MOST_VIEWS, View, draw_figure, draw_views
from traindyno.report.charts.line_chart import Line, MeasuredPoint, Part, divide_lines, draw_lines
from traindyno.report.download import PlotData
from traindyno.report.markup import Markup, element


def draw_rates(report: Report) -> Markup | None:
    """None where no cells differ in one number only."""
    parts = [(axis, part) for axis in _axes(report) if (lines := _lines(report, axis)) for part in divide_lines(lines)]
    if not parts:
        return None
    left_out = f" The first {MOST_VIEWS} of {len(parts)} pictures." if len(parts) > MOST_VIEWS else ""
    views = [
        View(name=f"{_name(axis)}{f', {part.name}' if part.name else ''}", content=_figure(axis, part, index))
        for index, (axis, part) in enumerate(parts[:MOST_VIEWS])
    ]
    return element(
        "section",
        element("h2", "Rate over one setting"),
        element(
            "p",
            "A line joins cells that are equal in all else, apart from arguments that follow from the setting."
            f"{left_out}",
            class_="hint",
        ),
        draw_views("rates", views),
        id="rates",
    )


def _axes(report: Report) -> Iterator[str]:
    """The axes of numbers, those with the most values first.

    The number of instances, the settings that follow it, and those that affect only learning are left out.
    """
    workload, following = report.suite.workload, report.suite.scaling.following
    sized = find_series(report.cells, workload, following=following)
    left_out = {SIZE, *settings_with(Effect.LEARNING)}
    left_out |= {f"{HYPERPARAMETER_PREFIX}{name}" for series in sized for name in series.following}
    for axis in find_axes(report.cells):
        numbers = {axis_value(cell, workload, axis.name) for cell in report.cells} - {None}
        if axis.name not in left_out and len(numbers) > 1:
            yield axis.name


def _lines(report: Report, axis: str) -> list[Line]:
    rates = {row.cell_id: row.samples_per_second for row in report.verdict.ranked_rows}
    workload = report.suite.workload
    series = [
        each
        for each in find_series(report.cells, workload, axis=axis)
        if sum(rates.get(cell.cell_id) is not None for cell in each.cells) > 1
    ]
    return [
        Line(
            cell=cell,
            points=tuple(
                MeasuredPoint(x=x, y=rate.mean, interval=rate.interval)
                for member in each.cells
                if (rate := rates.get(member.cell_id)) and (x := axis_value(member, workload, axis)) is not None
            ),
        )
        for each, cell in zip(series, label_series(series, axis=axis), strict=True)
    ]


def _name(axis: str) -> str:
    return axis.removeprefix(HYPERPARAMETER_PREFIX).replace("_", " ")


def _figure(axis: str, part: Part, index: int) -> Markup:
    title = f"Samples per second over {_name(axis)}{f', {part.name}' if part.name else ''}"
    data = PlotData(
        name=f"rates-{index + 1}",
        header=("series", _name(axis), "samples_per_second"),
        rows=[(line.label, point.x, point.y) for line in part.lines for point in line.points],
    )
    return draw_figure(title, draw_lines(part.lines, across_name=_name(axis), title=title), data=data)
