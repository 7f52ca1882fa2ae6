"""The time of each cell by phase, and which cells wait for data."""

from statistics import fmean

from traindyno.core.measurement.run_result import RunResult
from traindyno.core.verdict.report_data import Report
from traindyno.report.charts.figure import draw_figure
from traindyno.report.charts.phase_chart import draw_phases, phase_order
from traindyno.report.markup import Markup, PlotData, element
from traindyno.report.slow_steps_table import draw_slow_steps

TITLE = "Mean time of a run by phase"


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
    slow_steps = draw_slow_steps(report)
    if not known and not slow_steps:
        return None
    phases = None
    if known:
        rows = [(label, name, seconds) for label, means in known for name, seconds in means.items()]
        data = PlotData(name="phases", header=("cell", "phase", "seconds"), rows=rows)
        phases = draw_figure(TITLE, draw_phases(known, title=TITLE), data=data)
    return element("section", element("h2", "Time"), slow_steps, phases, id="time")
