"""Heat maps: the goal's metric over any two of the settings that vary."""

from collections.abc import Iterator, Sequence

from traindyno.core.verdict.axes import HeatMap, map_heat
from traindyno.core.verdict.report_data import Report
from traindyno.core.verdict.verdict import Verdict
from traindyno.core.verdict.verdict_text import metric_text
from traindyno.report.charts.figure import MOST_VIEWS, View, draw_figure, draw_views
from traindyno.report.charts.plot import at, cut, svg, text
from traindyno.report.charts.verdict_chart import METRIC_NAMES
from traindyno.report.download import PlotData
from traindyno.report.markup import Markup, element

WIDTH, LABEL_WIDTH = 1040, 210
ROW_HEIGHT, TOP = 34, 46
WIDEST_BOX = 150
SHADES = 6
LABEL_LETTERS = 28
LETTER_WIDTH = 7


def draw_heat(report: Report) -> Markup | None:
    """None with fewer than two axes, or where nothing was measured."""
    maps = [each for each in map_heat(report.cells, report.verdict) if any(box.cell_id for box in each.crossings)]
    if not maps:
        return None
    views = [
        View(name=f"{_name(each.columns.name)} × {_name(each.rows.name)}", content=_figure(each, report.verdict))
        for each in maps[:MOST_VIEWS]
    ]
    left_out = f" The first {MOST_VIEWS} of {len(maps)} pairs of settings." if len(maps) > MOST_VIEWS else ""
    return element(
        "section",
        element("h2", "Two settings at a time"),
        element(
            "p",
            f"{METRIC_NAMES[report.verdict.metric]}. A box shows the best measured cell that has its two settings, over"
            f" all values of the others; the strongest color is the best.{left_out}",
            class_="hint",
        ),
        draw_views("heat", views),
        id="heat",
    )


def _name(setting: str) -> str:
    return setting.removeprefix("hyperparameters.").replace("_", " ")


def _figure(found: HeatMap, verdict: Verdict) -> Markup:
    title = f"{_name(found.rows.name).capitalize()} by {_name(found.columns.name)}"
    data = PlotData(
        name=f"heat-{found.columns.name}-{found.rows.name}".replace(".", "-"),
        header=(found.columns.name, found.rows.name, "cells", "best_cell_id", verdict.metric.value),
        rows=[(box.column, box.row, box.cell_count, box.cell_id, box.measure) for box in found.crossings],
    )
    return draw_figure(title, _draw(found, verdict, title), data=data)


def _draw(found: HeatMap, verdict: Verdict, title: str) -> Markup:
    width = min(WIDEST_BOX, (WIDTH - LABEL_WIDTH) / len(found.columns.values))
    height = TOP + ROW_HEIGHT * len(found.rows.values) + 8
    letters = max(4, int(width / LETTER_WIDTH))
    headings = (
        text(cut(value, letters), LABEL_WIDTH + width * (index + 0.5), TOP - 8, class_="tick", anchor="middle")
        for index, value in enumerate(found.columns.values)
    )
    edge = LABEL_WIDTH - 12
    names = (
        text(cut(value, LABEL_LETTERS), edge, TOP + ROW_HEIGHT * (index + 0.5) + 4, class_="tick", anchor="end")
        for index, value in enumerate(found.rows.values)
    )
    known = [box.measure for box in found.crossings if box.measure is not None]
    described = "; ".join(
        f"{box.column} and {box.row}: {metric_text(verdict.metric, box.measure)}" for box in found.crossings
    )
    return svg(
        WIDTH,
        height,
        text(_name(found.columns.name), LABEL_WIDTH, 14, class_="axis"),
        text(_name(found.rows.name), edge, TOP - 8, class_="axis", anchor="end"),
        *headings,
        *names,
        *_boxes(found, verdict, width, known),
        title=title,
        description=described,
    )


def _boxes(found: HeatMap, verdict: Verdict, width: float, known: Sequence[float]) -> Iterator[Markup]:
    for box in found.crossings:
        x = LABEL_WIDTH + width * found.columns.values.index(box.column)
        y = TOP + ROW_HEIGHT * found.rows.values.index(box.row)
        shade = "heat-none" if box.measure is None else f"heat-{_shade(box.measure, known)}"
        best = " best" if box.cell_id is not None and box.cell_id == verdict.recommended else ""
        tip = verdict.row(box.cell_id).label if box.cell_id else f"not measured, or refused ({box.cell_count} cells)"
        yield element(
            "rect",
            element("title", tip),
            class_=f"{shade}{best}",
            x=at(x + 1),
            y=at(y + 1),
            width=at(width - 2),
            height=at(ROW_HEIGHT - 2),
        )
        shown = "–" if box.measure is None else metric_text(verdict.metric, box.measure)
        if len(shown) * LETTER_WIDTH < width:
            middle = x + width / 2, y + ROW_HEIGHT / 2 + 4
            yield text(shown, *middle, class_=f"box {shade}{best}", anchor="middle")


def _shade(measure: float, known: Sequence[float]) -> int:
    """The number of a shade: 0 for the worst value, the highest for the best, in equal steps of the value."""
    low, high = min(known), max(known)
    return SHADES - 1 if high <= low else min(SHADES - 1, int((high - measure) / (high - low) * SHADES))
