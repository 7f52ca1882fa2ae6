"""What a step of each cell consists of, its time by phase, and every trial's step times."""

from collections.abc import Sequence
from statistics import fmean

from traindyno.core.costs.quantity_text import UNKNOWN, seconds_text, share_text
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.slowness.slowness_text import is_wait_named, share_of_step_text
from traindyno.core.slowness.step_shares import CellSteps, StepShares, divide_step, wait_share
from traindyno.core.verdict.report_data import Report
from traindyno.report.charts.figure import draw_figure
from traindyno.report.charts.phase_chart import draw_phases, phase_order
from traindyno.report.charts.plot import legend, series_class
from traindyno.report.charts.timeline_chart import draw_timeline, highest_step_text
from traindyno.report.markup import Markup, PlotData, columns, download_csv, draw_table, element, join

MOST_CELLS, MOST_TRIALS = 12, 8
MOST_ROWS = 20
COLUMNS = columns(
    *("Cell", "# Step", "# Waiting", "# Data", "# Communication", "# Optimizer", "# Rest", "# Start-up"),
    explained={
        "Step": "mean time of a step without checkpoints, evaluation and stalls",
        "Waiting": "for data, by the step log, the mean of the processes",
        "Data": "what a step would lose without its loader",
        "Communication": "exchange of gradients that nothing hides",
        "Rest": "forward and backward pass, and parts without a figure",
        "Start-up": "paid once",
    },
)
CAPTION = (
    "Shares of a step, with 95 % intervals. Data, communication, optimizer and the rest are 100 % together. They are "
    "differences between probes after the run (measurement.probes); cells without probes have the wait for data only. "
    "Noise: the probes can't tell the part from nothing. The best 20 cells at most."
)


def draw_slowness(report: Report) -> Markup | None:
    """None where no cell was probed or waits for data."""
    rows = []
    for row in report.verdict.ranked_rows:
        parts = row.part(CellSteps).step_parts
        if parts and (parts.is_probed or is_wait_named(parts)):
            shares, told = divide_step(parts), [UNKNOWN] * 4
            if shares is not None:
                told = [*(_text(name, shares) for name in shares.parts), share_of_step_text(shares.rest)]
            waiting = share_of_step_text(wait_share(parts))
            overhead = seconds_text(row.time.overhead_seconds)
            rows.append([row.label, seconds_text(parts.step.mean), waiting, *told, overhead])
    return join(element("h3", "Why slow"), draw_table(COLUMNS, rows[:MOST_ROWS], caption=CAPTION)) if rows else None


def _text(part: str, shares: StepShares) -> str:
    share = shares.parts[part]
    if share is None:
        return UNKNOWN
    is_noise = part in shares.noise
    return f"noise (± {share_text(share.half_width, digits=0)})" if is_noise else share_of_step_text(share)


CellResults = tuple[str, list[RunResult]]


def draw_time(report: Report) -> Markup | None:
    results: dict[str, list[RunResult]] = {}
    for each in report.results:
        results.setdefault(each.run.cell.cell_id, []).append(each)
    by_cell = [(row.label, results.get(row.cell_id, [])) for row in report.verdict.ranked_rows]
    known = []
    for label, own in by_cell:  # the mean of the runs that have phases, in the order of a run
        accounts = [each.phases_seconds for each in own if each.phases_seconds]
        names = sorted({name for account in accounts for name in account}, key=lambda name: (phase_order(name), name))
        means = {name: fmean(account.get(name, 0.0) for account in accounts) for name in names}
        known += [(label, means)] if sum(means.values()) > 0 else []
    timed = [
        (label, [each for each in results if each.measured and each.measured.timeline.seconds][:MOST_TRIALS])
        for label, results in by_cell
    ]
    drawn = [(label, results) for label, results in timed if results][:MOST_CELLS]
    slowness = draw_slowness(report)
    if not known and not drawn and slowness is None:
        return None
    title, phases = "Mean time of a run by phase", None
    if known:
        rows = [(label, name, seconds) for label, means in known for name, seconds in means.items()]
        data = PlotData(name="phases", header=("cell", "phase", "seconds"), rows=rows)
        phases = draw_figure(title, draw_phases(known, title=title), data=data)
    timelines = []
    for label, own in drawn:
        runs = [(f"trial {each.run.trial}", each.measured) for each in own if each.measured]
        picture = draw_timeline(runs, title=f"Step times of {label}")
        timelines.append(draw_figure(label, picture, note=highest_step_text([run for _, run in runs])))
    measured = sum(bool(results) for _, results in timed)
    left_out = f" The best {len(drawn)} of {measured} cells." if measured > len(drawn) else ""
    most_trials = max((len(results) for _, results in drawn), default=0)
    return element(
        "section",
        element("h2", "Time"),
        slowness,
        phases,
        element("h3", "Step times", download_csv(_step_data(drawn))),
        element(
            "p",
            f"Each line is a trial (up to {MOST_TRIALS}); the shaded part is the warm-up, which the rates "
            "exclude. A step's time is that of its slowest rank and includes waiting for data."
            f"{left_out}",
            class_="hint",
        ),
        legend([(series_class(index), f"trial {index + 1}") for index in range(most_trials)]),
        element("div", *timelines, class_="multiples"),
        id="time",
    )


def _step_data(drawn: Sequence[CellResults]) -> PlotData:
    """A row for each point: the mean of ``steps`` steps from ``first_step`` on."""
    runs = [(each, each.measured.timeline) for _, results in drawn for each in results if each.measured]
    return PlotData(
        name="step-times",
        header=("run_id", "first_step", "steps", "seconds"),
        rows=[
            (each.run.run_id, line.first_step + index * line.stride, line.stride, seconds)
            for each, line in runs
            for index, seconds in enumerate(line.seconds)
        ],
    )
