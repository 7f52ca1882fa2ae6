"""The time of each cell by phase, and every trial's step times."""

from collections.abc import Sequence
from statistics import fmean, median

from traindyno.core.costs.quantity_text import seconds_text
from traindyno.core.measurement.measured_run import MeasuredRun
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.verdict.report_data import Report
from traindyno.report.charts.figure import draw_figure
from traindyno.report.charts.phase_chart import draw_phases, phase_order
from traindyno.report.charts.plot import (
    Scale,
    at,
    horizontal_grid,
    legend,
    make_scale,
    polyline,
    seconds_unit,
    series_class,
    svg,
    vertical_grid,
)
from traindyno.report.markup import Markup, PlotData, download_csv, element
from traindyno.report.slow_steps_table import draw_slow_steps

WIDTH = 500
HEIGHT = 190
LEFT = 62
RIGHT = 10
TOP = 12
BOTTOM = 30
CEILING_MEDIANS = 3.0
MOST_CELLS = 12
MOST_TRIALS = 8
CellResults = tuple[str, list[RunResult]]


def draw_timeline(runs: Sequence[tuple[str, MeasuredRun]], *, title: str) -> Markup:
    """Pairs of a trial's name and its measurement.

    Steps longer than three medians are clipped at the upper edge.
    """
    ceiling = _ceiling([run for _, run in runs])
    last = max(
        run.timeline.first_step + run.timeline.stride * len(run.timeline.seconds) for _, run in runs
    )
    first = min(run.timeline.first_step for _, run in runs)
    across = make_scale(first, last, begin=LEFT, end=WIDTH - RIGHT)
    up = make_scale(0.0, ceiling, begin=HEIGHT - BOTTOM, end=TOP, unit=seconds_unit(ceiling))
    lines = []
    for index, (_, run) in enumerate(runs):
        first_step = run.timeline.first_step
        stride = run.timeline.stride
        seconds = run.timeline.seconds
        points = [
            (across(first_step + stride * (position + 0.5)), up(min(step_seconds, ceiling)))
            for position, step_seconds in enumerate(seconds)
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
    begin = across(across.low)
    end = across(run.timeline.first_step + run.steady_state.warmup_steps)
    if end <= begin:
        return []
    return [
        element(
            "rect",
            class_="warmup",
            x=at(begin),
            y=TOP,
            width=at(end - begin),
            height=HEIGHT - TOP - BOTTOM,
        )
    ]


def draw_time(report: Report) -> Markup | None:
    results: dict[str, list[RunResult]] = {}
    for result in report.results:
        results.setdefault(result.run.cell.cell_id, []).append(result)
    by_cell = [(row.label, results.get(row.cell_id, [])) for row in report.verdict.ranked_rows]
    known = []
    for label, own in by_cell:  # the mean of the runs that have phases, in the order of a run
        accounts = [result.phases_seconds for result in own if result.phases_seconds]
        names = sorted(
            {name for account in accounts for name in account},
            key=lambda name: (phase_order(name), name),
        )
        means = {name: fmean(account.get(name, 0.0) for account in accounts) for name in names}
        known += [(label, means)] if sum(means.values()) > 0 else []
    timed = [
        (
            label,
            [result for result in results if result.measured and result.measured.timeline.seconds][
                :MOST_TRIALS
            ],
        )
        for label, results in by_cell
    ]
    drawn = [(label, results) for label, results in timed if results][:MOST_CELLS]
    slow_steps = draw_slow_steps(report)
    if not known and not drawn and not slow_steps:
        return None
    title = "Mean time of a run by phase"
    phases = None
    if known:
        rows = [(label, name, seconds) for label, means in known for name, seconds in means.items()]
        data = PlotData(name="phases", header=("cell", "phase", "seconds"), rows=rows)
        phases = draw_figure(title, draw_phases(known, title=title), data=data)
    timelines = []
    for label, own in drawn:
        runs = [(result.run.name, result.measured) for result in own if result.measured]
        picture = draw_timeline(runs, title=f"Step times of {label}")
        timelines.append(
            draw_figure(label, picture, note=highest_step_text([run for _, run in runs]))
        )
    measured = sum(bool(results) for _, results in timed)
    left_out = f" The best {len(drawn)} of {measured} cells." if measured > len(drawn) else ""
    longest = max((results for _, results in drawn), key=len, default=[])
    return element(
        "section",
        element("h2", "Time"),
        slow_steps,
        phases,
        element("h3", "Step times", download_csv(_step_data(drawn))),
        element(
            "p",
            f"Each line is a run (up to {MOST_TRIALS}); the shaded part is the warm-up, which the "
            "rates exclude. A step's time is that of its slowest rank and includes waiting for "
            f"data.{left_out}",
            class_="hint",
        ),
        legend([(series_class(index), result.run.name) for index, result in enumerate(longest)]),
        element("div", *timelines, class_="multiples"),
        id="time",
    )


def _step_data(drawn: Sequence[CellResults]) -> PlotData:
    """A row for each point: the mean of ``steps`` steps from ``first_step`` on."""
    runs = [
        (result, result.measured.timeline)
        for _, results in drawn
        for result in results
        if result.measured
    ]
    return PlotData(
        name="step-times",
        header=("run_id", "first_step", "steps", "seconds"),
        rows=[
            (result.run.run_id, line.first_step + index * line.stride, line.stride, seconds)
            for result, line in runs
            for index, seconds in enumerate(line.seconds)
        ],
    )
