"""Loss curves over the samples seen, one line per run, one color per cell."""

from collections.abc import Sequence

from traindyno.core.costs.quantity_text import number_text
from traindyno.core.measurement.loss_curve import LossCurve
from traindyno.report.markup import Markup, join
from traindyno.report.plot import (
    horizontal_grid,
    legend,
    make_scale,
    polyline,
    series_class,
    svg,
    text,
    vertical_grid,
)

WIDTH, HEIGHT = 1040, 320
LEFT, RIGHT, TOP, BOTTOM = 62, 16, 10, 40


def draw_losses(cells: Sequence[tuple[str, Sequence[LossCurve]]], *, title: str) -> Markup:
    """Pairs of a cell's label and its runs' curves, each with at least one point."""
    points = [point for _, curves in cells for curve in curves for point in curve.finite_points]
    across = make_scale(0.0, max(point.samples for point in points), begin=LEFT, end=WIDTH - RIGHT)
    losses = [point.loss for point in points]
    margin = 0.04 * (max(losses) - min(losses))
    up = make_scale(min(losses) - margin, max(losses) + margin, begin=HEIGHT - BOTTOM, end=TOP)
    lines = [
        polyline(
            [(across(point.samples), up(point.loss)) for point in curve.finite_points],
            class_=f"line {series_class(index)}",
        )
        for index, (_, curves) in enumerate(cells)
        for curve in curves
    ]
    described = "; ".join(
        f"{label}: from {number_text(curves[0].first)} to {number_text(curves[0].last)}" for label, curves in cells
    )
    picture = svg(
        WIDTH,
        HEIGHT,
        horizontal_grid(up, LEFT, WIDTH - RIGHT, count=5),
        vertical_grid(across, HEIGHT - BOTTOM, HEIGHT - BOTTOM),
        *lines,
        text("samples seen, all devices", WIDTH - RIGHT, HEIGHT - 6, class_="axis", anchor="end"),
        title=title,
        description=described,
    )
    return join(legend([(series_class(index), label) for index, (label, _) in enumerate(cells)]), picture)
