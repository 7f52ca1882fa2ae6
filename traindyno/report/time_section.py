"""What a step of each cell consists of, its time by phase, and every trial's step times."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from traindyno.core.measurement.run_result import RunResult
from traindyno.core.verdict.report_data import Report
from traindyno.report.charts.figure import draw_figure
from traindyno.report.charts.phase_chart import draw_phases, phase_order
from traindyno.report.charts.plot import legend, series_class
from traindyno.report.charts.timeline_chart import draw_timeline, highest_step_text
from traindyno.report.download import PlotData, download_csv
from traindyno.report.markup import Markup, element, join
from traindyno.report.slowness_table import draw_slowness

MOST_CELLS, MOST_TRIALS = 12, 8
CellResults = tuple[str, list[RunResult]]


def draw_time(report: Report) -> Markup | None:
    by_cell = _by_cell(report)
    phases = [(label, _mean_phases(results)) for label, results in by_cell]
    known = [(label, seconds) for label, seconds in phases if sum(seconds.values()) > 0]
    timed = [(label, [each for each in results if _has_timeline(each)][:MOST_TRIALS]) for label, results in by_cell]
    drawn = [(label, results) for label, results in timed if results][:MOST_CELLS]
    slowness = draw_slowness(report)
    if not known and not drawn and slowness is None:
        return None
    title = "Mean time of a run by phase"
    return element(
        "section",
        element("h2", "Time"),
        slowness,
        draw_figure(title, draw_phases(known, title=title), data=_phase_data(known)) if known else None,
        element("h3", "Step times", download_csv(_step_data(drawn))),
        element(
            "p",
            f"Each line is a trial (up to {MOST_TRIALS}); the shaded part is the warm-up, which the rates "
            "exclude. A step's time is that of its slowest rank and includes waiting for data."
            f"{_left_out(len(drawn), sum(bool(results) for _, results in timed))}",
            class_="hint",
        ),
        legend([(series_class(index), f"trial {index + 1}") for index in range(_most_trials(report))]),
        element("div", *(_timeline(label, results) for label, results in drawn), class_="multiples"),
        id="time",
    )


def _timeline(label: str, results: Sequence[RunResult]) -> Markup:
    runs = [(f"trial {each.run.trial}", each.measured) for each in results if each.measured]
    reasons = {reason for _, run in runs if (reason := run.unsteady_reason)}
    picture = draw_timeline(runs, title=f"Step times of {label}")
    notes = (element("p", f"No steady state: {reason}.", class_="hint") for reason in sorted(reasons))
    return draw_figure(label, join(picture, *notes), note=highest_step_text([run for _, run in runs]))


def _phase_data(rows: Sequence[tuple[str, Mapping[str, float]]]) -> PlotData:
    return PlotData(
        name="phases",
        header=("cell", "phase", "seconds"),
        rows=[(label, name, seconds) for label, phases in rows for name, seconds in phases.items()],
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


def _left_out(drawn: int, measured: int) -> str:
    return f" The best {drawn} of {measured} cells." if measured > drawn else ""


def _by_cell(report: Report) -> list[CellResults]:
    """Each cell's results, the best cells first."""
    results: dict[str, list[RunResult]] = {}
    for each in report.results:
        results.setdefault(each.run.cell.cell_id, []).append(each)
    return [(row.label, results.get(row.cell_id, [])) for row in report.verdict.ranked_rows]


def _has_timeline(result: RunResult) -> bool:
    return result.measured is not None and bool(result.measured.timeline.seconds)


def _mean_phases(results: Sequence[RunResult]) -> dict[str, float]:
    """The mean seconds of each phase over the runs that have phases, in the order of a run."""
    accounts = [each.phases_seconds for each in results if each.phases_seconds]
    names = sorted({name for account in accounts for name in account}, key=lambda name: (phase_order(name), name))
    return {name: fmean(account.get(name, 0.0) for account in accounts) for name in names}


def _most_trials(report: Report) -> int:
    return min(MOST_TRIALS, max((each.run.trial for each in report.results), default=0))
