"""Lines of losses or qualities, one for each run, one color for each cell."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from traindyno.core.costs.quantity_text import number_text
from traindyno.core.costs.to_target import LearningPoint
from traindyno.report.charts.plot import (
    Scale,
    Unit,
    at,
    horizontal_grid,
    legend,
    make_scale,
    polyline,
    seconds_unit,
    series_class,
    svg,
    text,
    vertical_grid,
)
from traindyno.report.markup import Markup, element, join

WIDTH, HEIGHT = 1040, 320
LEFT, RIGHT, TOP, BOTTOM = 62, 16, 10, 40
FEW_POINTS = 12
Point = tuple[float, float]


class Across(StrEnum):
    """The quantity on the horizontal axis."""

    STEPS = "steps"
    TIME = "time"
    COST = "cost"

    def of(self, point: LearningPoint) -> float | None:
        match self:
            case Across.STEPS:
                return point.step
            case Across.TIME:
                return point.seconds
            case Across.COST:
                return point.usd

    def unit(self, highest: float) -> Unit:
        match self:
            case Across.STEPS:
                return Unit(size=1)
            case Across.TIME:
                return seconds_unit(highest)
            case Across.COST:
                return Unit(size=1, before="$")


@dataclass(frozen=True, slots=True, kw_only=True)
class CellCurves:
    """``points`` of each run; ``curves``: the known pairs of positions that ``along`` computes from them."""

    cell_id: str
    label: str
    points: tuple[tuple[LearningPoint, ...], ...] = ()
    curves: tuple[tuple[Point, ...], ...] = field(default=())

    def along(self, across: Across) -> "CellCurves":
        curves = tuple(
            tuple((x, point.value) for point in run if (x := across.of(point)) is not None) for run in self.points
        )
        return CellCurves(cell_id=self.cell_id, label=self.label, curves=tuple(curve for curve in curves if curve))


def draw_learning(cells: Sequence[CellCurves], across: Across, *, title: str) -> Markup:
    """Each cell has at least one curve, each curve at least one point."""
    points = [point for each in cells for curve in each.curves for point in curve]
    highest = max(x for x, _ in points)
    horizontal = make_scale(0.0, highest, begin=LEFT, end=WIDTH - RIGHT, unit=across.unit(highest))
    low, high = min(y for _, y in points), max(y for _, y in points)
    margin = 0.04 * (high - low)
    up = make_scale(low - margin, high + margin, begin=HEIGHT - BOTTOM, end=TOP)
    described = "; ".join(
        f"{each.label}: from {number_text(each.curves[0][0][1])} to {number_text(each.curves[0][-1][1])}"
        for each in cells
    )
    picture = svg(
        WIDTH,
        HEIGHT,
        horizontal_grid(up, LEFT, WIDTH - RIGHT, count=5),
        vertical_grid(horizontal, HEIGHT - BOTTOM, HEIGHT - BOTTOM),
        *(_line(curve, horizontal, up, index) for index, each in enumerate(cells) for curve in each.curves),
        text(across.value, WIDTH - RIGHT, HEIGHT - 4, class_="axis", anchor="end"),
        title=title,
        description=described,
    )
    return join(legend([(series_class(index), each.label) for index, each in enumerate(cells)]), picture)


def _line(curve: Sequence[Point], across: Scale, up: Scale, index: int) -> Markup:
    """A line, with a dot at each point if there are few points, such as evaluations."""
    placed = [(across(x), up(y)) for x, y in curve]
    color = series_class(index)
    dots = placed if len(placed) <= FEW_POINTS else ()
    line = polyline(placed, class_=f"line {color}") if len(placed) > 1 else Markup("")
    return join(line, *(element("circle", class_=f"mark {color}", cx=at(x), cy=at(y), r=2.5) for x, y in dots))
