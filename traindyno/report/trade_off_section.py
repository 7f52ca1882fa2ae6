"""Cost against time of every cell, with the front of those that no other cell beats in both."""

from collections.abc import Sequence
from itertools import pairwise

from traindyno.core.costs.quantity_text import seconds_text, usd_text
from traindyno.core.verdict.trade_off import TradeOff, find_trade_offs
from traindyno.core.verdict.verdict import Verdict
from traindyno.report.charts.figure import draw_figure
from traindyno.report.charts.plot import (
    Scale,
    Unit,
    at,
    horizontal_grid,
    make_scale,
    polyline,
    seconds_unit,
    svg,
    text,
    vertical_grid,
)
from traindyno.report.download import PlotData
from traindyno.report.markup import Markup, element
from traindyno.report.table import Column, draw_table

WIDTH, HEIGHT = 1040, 380
LEFT, RIGHT, TOP, BOTTOM = 78, 24, 26, 40
TITLE = "Cost against time"
MOST_LISTED = 20


def draw_trade_off(verdict: Verdict) -> Markup | None:
    """None where fewer than two cells know both."""
    found = find_trade_offs(verdict)
    if len(found) < 2:
        return None
    front = [each for each in found if each.is_on_front]
    return element(
        "section",
        element("h2", "Cost against time"),
        element(
            "p",
            f"{len(front)} of {len(found)} cells are on the line: for each of them, no other cell is both cheaper and"
            " faster. Each other cell is slower and more expensive than one on the line.",
        ),
        draw_figure(TITLE, _draw(found, verdict), data=_data(found), note="numbers as in the table below"),
        _list(front[:MOST_LISTED], verdict),
        id="trade-off",
    )


def _draw(found: Sequence[TradeOff], verdict: Verdict) -> Markup:
    across, up = _scales(found)
    front = [each for each in found if each.is_on_front]
    steps = []
    for before, after in pairwise(front):
        steps += [
            (across(before.seconds.mean), up(before.usd.mean)),
            (across(after.seconds.mean), up(before.usd.mean)),
        ]
    if front:
        steps.append((across(front[-1].seconds.mean), up(front[-1].usd.mean)))
    numbers = {each.row.cell_id: index + 1 for index, each in enumerate(front[:MOST_LISTED])}
    described = "; ".join(
        f"{each.row.label}: {seconds_text(each.seconds.mean)}, {usd_text(each.usd.mean)}" for each in front
    )
    return svg(
        WIDTH,
        HEIGHT,
        horizontal_grid(up, LEFT, WIDTH - RIGHT),
        vertical_grid(across, TOP, HEIGHT - BOTTOM),
        polyline(steps, class_="front") if len(steps) > 1 else Markup(""),
        *(_point(each, across, up, numbers.get(each.row.cell_id), verdict) for each in reversed(found)),
        text("cost", LEFT - 6, TOP - 10, class_="axis", anchor="end"),
        text("time", WIDTH - RIGHT, HEIGHT - 4, class_="axis", anchor="end"),
        title=TITLE,
        description=f"on the front: {described}",
    )


def _scales(found: Sequence[TradeOff]) -> tuple[Scale, Scale]:
    """Both scales begin at zero, so that a distance reads as a ratio."""
    longest, dearest = (max(values) for values in zip(*((e.seconds.mean, e.usd.mean) for e in found), strict=True))
    across = make_scale(0.0, longest * 1.05, begin=LEFT, end=WIDTH - RIGHT, unit=seconds_unit(longest))
    return across, make_scale(0.0, dearest * 1.05, begin=HEIGHT - BOTTOM, end=TOP, unit=Unit(size=1, before="$"))


def _point(each: TradeOff, across: Scale, up: Scale, number: int | None, verdict: Verdict) -> Markup:
    x, y = across(each.seconds.mean), up(each.usd.mean)
    emphasis = "best" if each.row.cell_id == verdict.recommended else "front" if each.is_on_front else "other"
    name = f"{each.row.label}: {seconds_text(each.seconds.mean)}, {usd_text(each.usd.mean)}"
    label = text(str(number), x + 7, y - 6, class_=f"value {emphasis}") if number else None
    circle = element("circle", element("title", name), class_=f"dot {emphasis}", cx=at(x), cy=at(y), r=5)
    return element("g", circle, label)


def _list(front: Sequence[TradeOff], verdict: Verdict) -> Markup:
    return draw_table(
        [
            Column(heading="Cell"),
            Column(heading="No.", is_number=True),
            Column(heading="Time", is_number=True),
            Column(heading="Cost", is_number=True),
        ],
        [
            [each.row.label, str(index + 1), seconds_text(each.seconds.mean), usd_text(each.usd.mean)]
            for index, each in enumerate(front)
        ],
        caption="The cells on the line, the fastest first.",
        emphasized=[index for index, each in enumerate(front) if each.row.cell_id == verdict.recommended],
    )


def _data(found: Sequence[TradeOff]) -> PlotData:
    return PlotData(
        name="cost-against-time",
        header=("cell", "seconds", "usd", "is_on_front"),
        rows=[(each.row.label, each.seconds.mean, each.usd.mean, each.is_on_front) for each in found],
    )
