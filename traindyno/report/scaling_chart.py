"""Throughput over the number of instances: measured points, the ideal line, and a fitted curve where there is one."""

from collections.abc import Sequence
from dataclasses import dataclass

from traindyno.core.costs.quantity_text import number_text
from traindyno.core.measurement.statistics import Estimate
from traindyno.report.markup import Markup, element, join
from traindyno.report.plot import (
    Scale,
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

WIDTH, HEIGHT = 1040, 340
LEFT, RIGHT, TOP, BOTTOM = 78, 24, 12, 40


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPoint:
    instance_count: int
    rate: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingLine:
    """One series. ``fit`` are points of the fitted curve: instances and rate."""

    label: str
    points: tuple[MeasuredPoint, ...]
    fit: tuple[tuple[float, float], ...] = ()

    @property
    def ideal(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The ideal rates from the fewest instances to the most, in proportion to their number."""
        fewest, most = self.points[0].instance_count, self.points[-1].instance_count
        return (fewest, self.ideal_rate(fewest)), (most, self.ideal_rate(most))

    def fitted(self, point: MeasuredPoint) -> float | None:
        """The curve's rate at the size of a measured point; None where it has none."""
        return next((rate for count, rate in self.fit if count == point.instance_count), None)

    def ideal_rate(self, instance_count: int) -> float:
        first = self.points[0]
        return first.rate.mean * instance_count / first.instance_count


def draw_scaling_lines(lines: Sequence[ScalingLine], *, title: str) -> Markup:
    """Dots are measured, with their intervals; dashes are the ideal, thin lines are the fit."""
    most = max(point.instance_count for line in lines for point in line.points)
    highest = max(max(line.ideal[1][1], *(_high(point.rate) for point in line.points)) for line in lines)
    furthest = max([most, *(x for line in lines for x, _ in line.fit)])
    across = make_scale(0.0, furthest * 1.03, begin=LEFT, end=WIDTH - RIGHT)
    up = make_scale(0.0, highest * 1.03, begin=HEIGHT - BOTTOM, end=TOP)
    described = "; ".join(
        f"{line.label}: " + ", ".join(f"{p.instance_count}: {number_text(p.rate.mean)}" for p in line.points)
        for line in lines
    )
    picture = svg(
        WIDTH,
        HEIGHT,
        horizontal_grid(up, LEFT, WIDTH - RIGHT),
        vertical_grid(across, HEIGHT - BOTTOM, HEIGHT - BOTTOM),
        *(_line(line, across, up, index) for index, line in enumerate(lines)),
        text("instances", WIDTH - RIGHT, HEIGHT - 4, class_="axis", anchor="end"),
        title=title,
        description=described,
    )
    return join(legend([(series_class(index), line.label) for index, line in enumerate(lines)]), picture)


def _high(rate: Estimate) -> float:
    return rate.interval.high if rate.interval and rate.interval.high < 2 * rate.mean else rate.mean


def _line(line: ScalingLine, across: Scale, up: Scale, index: int) -> Markup:
    color = series_class(index)
    ideal = polyline([(across(x), up(y)) for x, y in line.ideal], class_=f"line ideal {color}")
    fit = [(across(x), up(y)) for x, y in line.fit if y <= up.high]
    measured = [(across(point.instance_count), up(point.rate.mean)) for point in line.points]
    return join(
        ideal,
        polyline(fit, class_=f"line {color}") if len(fit) > 1 else polyline(measured, class_=f"line {color}"),
        *(_whisker(point, across, up, color) for point in line.points),
        *(element("circle", class_=f"mark {color}", cx=at(x), cy=at(y), r=4) for x, y in measured),
    )


def _whisker(point: MeasuredPoint, across: Scale, up: Scale, color: str) -> Markup | None:
    interval = point.rate.interval
    if interval is None:
        return None
    x, low, high = across(point.instance_count), up(interval.low), up(min(interval.high, up.high))
    return element("line", class_=f"line {color}", x1=at(x), x2=at(x), y1=at(low), y2=at(high))
