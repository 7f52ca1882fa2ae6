"""The cells whose steps wait for data: a part of the section of the time."""

from traindyno.core.costs.quantity_text import seconds_text
from traindyno.core.verdict.report_data import Report
from traindyno.core.verdict.slow_steps import CellSteps, wait_text
from traindyno.report.markup import Markup, columns, draw_table, element, join

MOST_ROWS = 20
COLUMNS = columns(
    "Cell",
    "# Step",
    "# Waiting",
    "# Start-up",
    explained={
        "Step": "mean time of a step without checkpoints, evaluation and stalls",
        "Waiting": "for data, by the step log, the mean of the processes",
        "Start-up": "paid once",
    },
)
CAPTION = (
    "Mean shares of a step, and those of single trials, of the cells that wait for data. The best "
    "20 at most."
)


def draw_slow_steps(report: Report) -> Markup | None:
    """None where no cell waits for data."""
    rows = []
    for row in report.verdict.ranked_rows:
        steps = row.part(CellSteps)
        waiting = wait_text(steps)
        if steps.step_parts and waiting:
            overhead = seconds_text(row.time.overhead_seconds)
            rows.append([row.label, seconds_text(steps.step_parts.step.mean), waiting, overhead])
    return (
        join(element("h3", "Why slow"), draw_table(COLUMNS, rows[:MOST_ROWS], caption=CAPTION))
        if rows
        else None
    )
