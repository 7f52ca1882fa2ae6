"""Time by phase for each cell, and every trial's step times."""

from collections.abc import Sequence
from statistics import fmean

from traindyno.core.measurement.run_result import RunResult
from traindyno.core.verdict.report_data import Report
from traindyno.report.markup import Markup, element
from traindyno.report.phase_chart import draw_phases, phase_order
from traindyno.report.plot import legend, series_class
from traindyno.report.timeline_chart import draw_timeline, highest_step_text

MOST_TRIALS = 8


def draw_time(report: Report) -> Markup | None:
    by_cell = [
        (cell.label, [each for each in report.results if each.run.cell.cell_id == cell.cell_id])
        for cell in report.cells
    ]
    phases = [(label, _mean_phases(results)) for label, results in by_cell]
    known = [(label, seconds) for label, seconds in phases if sum(seconds.values()) > 0]
    drawn = [(label, [each for each in results if _has_timeline(each)][:MOST_TRIALS]) for label, results in by_cell]
    timelines = [_timeline(label, results) for label, results in drawn if results]
    if not known and not timelines:
        return None
    title = "Mean time of a run by phase"
    return element(
        "section",
        element("h2", "Where the time went"),
        element("figure", element("figcaption", title), draw_phases(known, title=title)) if known else None,
        element("h3", "Step times"),
        element(
            "p",
            f"Each line is a trial (up to {MOST_TRIALS}); the shaded part is the warm-up, which the rates "
            "exclude. A step's time is that of its slowest rank and includes waiting for data.",
            class_="hint",
        ),
        legend([(series_class(index), f"trial {index + 1}") for index in range(_most_trials(report))]),
        element("div", *timelines, class_="multiples"),
        id="time",
    )


def _timeline(label: str, results: Sequence[RunResult]) -> Markup:
    runs = [(f"trial {each.run.trial}", each.measured) for each in results if each.measured]
    reasons = {run.steady_state.reason for _, run in runs if run.steady_state.reason}
    return element(
        "figure",
        element("figcaption", label, element("small", highest_step_text([run for _, run in runs]))),
        draw_timeline(runs, title=f"Step times of {label}"),
        *(element("p", f"No steady state: {reason}.", class_="hint") for reason in sorted(reasons)),
    )


def _has_timeline(result: RunResult) -> bool:
    return result.measured is not None and bool(result.measured.timeline.seconds)


def _mean_phases(results: Sequence[RunResult]) -> dict[str, float]:
    """Over the runs with phases, in the order of a run."""
    accounts = [each.phases_seconds for each in results if each.phases_seconds]
    names = sorted({name for account in accounts for name in account}, key=lambda name: (phase_order(name), name))
    return {name: fmean(account.get(name, 0.0) for account in accounts) for name in names}


def _most_trials(report: Report) -> int:
    return min(MOST_TRIALS, max((each.run.trial for each in report.results), default=0))
