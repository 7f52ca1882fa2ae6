"""Step times of one cell's trials, step by step, with the warm-up shaded."""

from collections.abc import Sequence
from statistics import median

from traindyno.core.costs.quantity_text import seconds_text
from traindyno.core.measurement.measured_run import MeasuredRun
from traindyno.report.charts.plot import (
    Scale,
    at,
    horizontal_grid,
    make_scale,
    polyline,
    seconds_unit,
    series_class,
    svg,
    vertical_grid,
)
from traindyno.report.markup import Markup, element

WIDTH, HEIGHT = 500, 190
LEFT, RIGHT, TOP, BOTTOM = 62, 10, 12, 30
CEILING_MEDIANS = 3.0


def draw_timeline(runs: Sequence[tuple[str, MeasuredRun]], *, title: str) -> Markup:
    """Pairs of a trial's name and its measurement. Steps longer than three medians are clipped at the upper edge."""
    ceiling = _ceiling([run for _, run in runs])
    last = max(run.timeline.first_step + run.timeline.stride * len(run.timeline.seconds) for _, run in runs)
    first = min(run.timeline.first_step for _, run in runs)
    across = make_scale(first, last, begin=LEFT, end=WIDTH - RIGHT)
    up = make_scale(0.0, ceiling, begin=HEIGHT - BOTTOM, end=TOP, unit=seconds_unit(ceiling))
    lines = []
    for index, (_, run) in enumerate(runs):
        first_step, stride, seconds = run.timeline.first_step, run.timeline.stride, run.timeline.seconds
        points = [
            (across(first_step + stride * (position + 0.5)), up(min(each, ceiling)))
            for position, each in enumerate(seconds)
        ]
        lines.append(polyline(points, class_=f"line {series_class(index)}"))
    described = "; ".join(
        f"{name}: median {seconds_text(median(run.timeline.seconds))} a step,"
        f" warm-up {run.steady_state.warmup_steps} steps"
        for name, run in runs
    )
    return svg(
        WIDTH,
        HEIGHT,
        *_warmup(runs, across),
        horizontal_grid(up, LEFT, WIDTH - RIGHT),
        vertical_grid(across, HEIGHT - BOTTOM, HEIGHT - BOTTOM),
        *lines,
        title=title,
        description=described,
    )


def highest_step_text(runs: Sequence[MeasuredRun]) -> str | None:
    """A note on clipped steps, if there are any."""
    highest = max(seconds for run in runs for seconds in run.timeline.seconds)
    return f"highest step {seconds_text(highest)}" if highest > _ceiling(runs) else None


def _ceiling(runs: Sequence[MeasuredRun]) -> float:
    steady = [
        seconds
        for run in runs
        for seconds in run.timeline.seconds[run.steady_state.warmup_steps // run.timeline.stride :]
    ]
    everything = [seconds for run in runs for seconds in run.timeline.seconds]
    center = median(steady or everything)
    return min(max(everything), max(CEILING_MEDIANS * center, 0.0)) * 1.05 or 1.0


def _warmup(runs: Sequence[tuple[str, MeasuredRun]], across: Scale) -> list[Markup]:
    """The trials' longest warm-up, shaded."""
    run = max((run for _, run in runs), key=lambda run: run.steady_state.warmup_steps)
    begin, end = across(across.low), across(run.timeline.first_step + run.steady_state.warmup_steps)
    if end <= begin:
        return []
    return [element("rect", class_="warmup", x=at(begin), y=TOP, width=at(end - begin), height=HEIGHT - TOP - BOTTOM)]
