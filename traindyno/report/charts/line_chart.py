"""Values over a number, such as rates over instances or losses over steps: one color for each
series of cells.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindyno.core.costs.quantity_text import number_text
from traindyno.figures.estimates import Interval
from traindyno.report.charts.plot import (
    SERIES_COLORS,
    Scale,
    Unit,
    at,
    horizontal_grid,
    legend,
    make_scale,
    polyline,
    series_class,
    svg,
    text,
    vertical_grid,
)
from traindyno.report.markup import Markup, element, join

WIDTH = 1040
HEIGHT = 330
LEFT = 78
RIGHT = 24
TOP = 12
BOTTOM = 40
FEW_POINTS = 12  # so many points of a curve, such as evaluations, have dots


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    x: float
    y: float
    interval: Interval | None = None

    @property
    def high(self) -> float:
        """The end of the interval; a very wide one is cut."""
        return self.interval.high if self.interval and self.interval.high < 2 * self.y else self.y


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One or more curves of a color.

    Each has at least one point. ``ideal`` is x and y, drawn with dashes.
    """

    label: str
    curves: tuple[tuple[Point, ...], ...]
    ideal: tuple[tuple[float, float], ...] = ()

    @property
    def points(self) -> tuple[Point, ...]:
        return tuple(point for curve in self.curves for point in curve)


def divide_lines(lines: Sequence[Line]) -> Iterator[tuple[Line, ...]]:
    """Lines for one picture each, as many as there are colors."""
    for first in range(0, len(lines), SERIES_COLORS):
        yield tuple(lines[first : first + SERIES_COLORS])


def draw_lines(
    lines: Sequence[Line],
    *,
    across_name: str,
    title: str,
    unit: Unit | None = None,
    is_from_zero: bool = True,
) -> Markup:
    """Line chart.

    Args:
        lines: Lines to draw.
        across_name: Name of the horizontal axis.
        title: Title of the chart.
        unit: Unit of the horizontal axis, which begins at 0.
        is_from_zero: The vertical axis begins at 0, too.
    """
    points = [point for line in lines for point in line.points]
    low = min(point.y for point in points)
    high = max(point.high for point in points)
    high = max(high, *(y for line in lines for _, y in line.ideal), high)
    margin = 0.04 * (high - low)
    across = make_scale(
        0.0, max(point.x for point in points) * 1.02, begin=LEFT, end=WIDTH - RIGHT, unit=unit
    )
    up = make_scale(
        0.0 if is_from_zero else low - margin, high + margin, begin=HEIGHT - BOTTOM, end=TOP
    )
    described = "; ".join(
        (
            f"{line.label}: from {number_text(line.curves[0][0].y)} to "
            f"{number_text(line.curves[0][-1].y)}"
        )
        for line in lines
    )
    picture = svg(
        WIDTH,
        HEIGHT,
        horizontal_grid(up, LEFT, WIDTH - RIGHT),
        vertical_grid(across, HEIGHT - BOTTOM, HEIGHT - BOTTOM),
        *(_line(line, across, up, series_class(index)) for index, line in enumerate(lines)),
        text(across_name, WIDTH - RIGHT, HEIGHT - 4, class_="axis", anchor="end"),
        title=title,
        description=described,
    )
    return join(
        legend([(series_class(index), line.label) for index, line in enumerate(lines)]), picture
    )


def _line(line: Line, across: Scale, up: Scale, color: str) -> Markup:
    drawn = (
        [polyline([(across(x), up(y)) for x, y in line.ideal], class_=f"line ideal {color}")]
        if line.ideal
        else []
    )
    for curve in line.curves:
        placed = [(across(point.x), up(point.y)) for point in curve]
        drawn += [polyline(placed, class_=f"line {color}")] if len(placed) > 1 else []
        dots = placed if len(placed) <= FEW_POINTS else ()
        drawn += [
            element("circle", class_=f"mark {color}", cx=at(x), cy=at(y), r=3) for x, y in dots
        ]
    for point in line.points:
        if point.interval is not None:
            x = across(point.x)
            low = up(point.interval.low)
            high = up(min(point.interval.high, up.high))
            drawn.append(
                element("line", class_=f"line {color}", x1=at(x), x2=at(x), y1=at(low), y2=at(high))
            )
    return join(*drawn)
