"""Measured values over a number, such as samples per second over instances: one line for each series of cells."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindyno.core.costs.quantity_text import number_text
from traindyno.core.statistics.estimates import Interval
from traindyno.core.suite.suite import Cell
from traindyno.core.verdict.axes import find_axes, value_text
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

WIDTH, HEIGHT = 1040, 340
LEFT, RIGHT, TOP, BOTTOM = 78, 24, 12, 40
MOST_LINES = SERIES_COLORS


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPoint:
    """One cell: its place on the axis, and its value with the interval."""

    x: float
    y: float
    interval: Interval | None = None

    @property
    def high(self) -> float:
        """The end of the interval; a very wide one is cut."""
        return self.interval.high if self.interval and self.interval.high < 2 * self.y else self.y


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One series. ``cell`` stands for its cells, and its label is the line's. ``ideal`` is x and y."""

    cell: Cell
    points: tuple[MeasuredPoint, ...]
    ideal: tuple[tuple[float, float], ...] = ()

    @property
    def label(self) -> str:
        return self.cell.label


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Lines for one picture. ``name`` says which, and is empty if these are all."""

    name: str
    lines: tuple[Line, ...]


def divide_lines(lines: Sequence[Line]) -> tuple[Part, ...]:
    """Parts of at most as many lines as there are colors, by the values of one setting if this makes few parts."""
    if len(lines) <= MOST_LINES:
        return (Part(name="", lines=tuple(lines)),)
    most_parts = 2 * -(-len(lines) // MOST_LINES)
    for axis in reversed(find_axes([line.cell for line in lines])):
        name = axis.name.rpartition(".")[2].replace("_", " ")
        parts = [
            Part(name=f"{name} {value}", lines=some)
            for value in axis.values
            if (some := tuple(line for line in lines if value_text(line.cell, axis.name) == value))
        ]
        if len(parts) <= most_parts and all(len(part.lines) <= MOST_LINES for part in parts):
            return tuple(parts)
    return tuple(
        Part(name=f"series {first + 1} to {first + len(some)}", lines=some)
        for first in range(0, len(lines), MOST_LINES)
        if (some := tuple(lines[first : first + MOST_LINES]))
    )


def draw_lines(lines: Sequence[Line], *, across_name: str, title: str, unit: Unit | None = None) -> Markup:
    """Dots are measured, with their intervals; dashes are the ideal."""
    most = max(point.x for line in lines for point in line.points)
    highest = max(y for line in lines for y in (*(y for _, y in line.ideal), *(point.high for point in line.points)))
    across = make_scale(0.0, most * 1.03, begin=LEFT, end=WIDTH - RIGHT)
    up = make_scale(0.0, highest * 1.03, begin=HEIGHT - BOTTOM, end=TOP, unit=unit)
    described = "; ".join(
        f"{line.label}: " + ", ".join(f"{point.x:g}: {number_text(point.y)}" for point in line.points) for line in lines
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
    return join(legend([(series_class(index), line.label) for index, line in enumerate(lines)]), picture)


def _line(line: Line, across: Scale, up: Scale, color: str) -> Markup:
    measured = [(across(point.x), up(point.y)) for point in line.points]
    return join(
        polyline([(across(x), up(y)) for x, y in line.ideal], class_=f"line ideal {color}") if line.ideal else None,
        polyline(measured, class_=f"line {color}"),
        *_whiskers(line, across, up, color),
        *(element("circle", class_=f"mark {color}", cx=at(x), cy=at(y), r=4) for x, y in measured),
    )


def _whiskers(line: Line, across: Scale, up: Scale, color: str) -> Iterator[Markup]:
    for point in line.points:
        if point.interval is not None:
            x, low, high = across(point.x), up(point.interval.low), up(min(point.interval.high, up.high))
            yield element("line", class_=f"line {color}", x1=at(x), x2=at(x), y1=at(low), y2=at(high))
