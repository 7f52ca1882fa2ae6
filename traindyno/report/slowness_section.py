"""What the steps of each cell consist of, and how the recommended cell differs from the runner-up."""

from traindyno.core.costs.quantity_text import seconds_text
from traindyno.core.measurement.step_parts import StepParts
from traindyno.core.slowness.slowness_text import part_text, waits_for_data
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.report_data import Report
from traindyno.report.markup import Markup, element
from traindyno.report.table import Column, draw_table

MOST_CELLS = 20
COLUMNS = [
    Column(heading="Cell"),
    Column(
        heading="Step", is_number=True, explanation="mean time of a step without checkpoints, evaluation and stalls"
    ),
    Column(heading="Waiting", is_number=True, explanation="by the step log, the mean of the processes"),
    Column(heading="Data", is_number=True, explanation="what a step would lose without its loader"),
    Column(heading="Communication", is_number=True, explanation="exchange of gradients that nothing hides"),
    Column(heading="Optimizer", is_number=True),
    Column(heading="Compute", is_number=True, explanation="forward and backward pass"),
    Column(heading="Start-up", is_number=True, explanation="paid once"),
]
CAPTION = (
    "Shares of a step, with 95 % intervals from the scatter of the steps. Data, communication, optimizer and compute "
    "are differences between the measured steps and probes after the run (measurement.probes); cells without probes "
    "have the wait for data only. The best 20 cells at most."
)


def draw_slowness(report: Report) -> Markup | None:
    """None where no cell was probed or waits for data, and in reports of earlier versions."""
    told = [row for row in report.verdict.ranked_rows if row.step_parts and _is_told(row.step_parts)]
    rows = [_row(row) for row in told[:MOST_CELLS]]
    if not rows:
        return None
    return element("section", element("h2", "Why slow"), draw_table(COLUMNS, rows, caption=CAPTION), id="slowness")


def _is_told(parts: StepParts) -> bool:
    return parts.is_probed or waits_for_data(parts)


def _row(row: CellRow) -> list[str | None]:
    parts = row.step_parts
    assert parts is not None
    data = part_text(parts, parts.data if parts.is_probed else None)
    others = (part_text(parts, part) for part in (parts.communication, parts.optimizer, parts.compute))
    return [
        row.label,
        seconds_text(parts.step.mean),
        part_text(parts, parts.waiting),
        data,
        *others,
        seconds_text(row.overhead_seconds),
    ]
