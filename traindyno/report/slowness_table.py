"""What the steps of each cell consist of, and how the recommended cell differs from the runner-up."""

from traindyno.core.costs.quantity_text import UNKNOWN, seconds_text, share_text
from traindyno.core.measurement.step_parts import StepParts
from traindyno.core.slowness.slowness_text import is_wait_named, share_of_step_text
from traindyno.core.slowness.step_shares import StepShares, divide_step, wait_share
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.report_data import Report
from traindyno.report.markup import Markup, element, join
from traindyno.report.table import Column, draw_table

MOST_CELLS = 20
COLUMNS = [
    Column(heading="Cell"),
    Column(
        heading="Step", is_number=True, explanation="mean time of a step without checkpoints, evaluation and stalls"
    ),
    Column(heading="Waiting", is_number=True, explanation="for data, by the step log, the mean of the processes"),
    Column(heading="Data", is_number=True, explanation="what a step would lose without its loader"),
    Column(heading="Communication", is_number=True, explanation="exchange of gradients that nothing hides"),
    Column(heading="Optimizer", is_number=True),
    Column(heading="Rest", is_number=True, explanation="forward and backward pass, and parts without a figure"),
    Column(heading="Start-up", is_number=True, explanation="paid once"),
]
CAPTION = (
    "Shares of a step, with 95 % intervals. Data, communication, optimizer and the rest are 100 % together. They are "
    "differences between probes after the run (measurement.probes); cells without probes have the wait for data only. "
    "Noise: the probes can't tell the part from nothing. The best 20 cells at most."
)


def draw_slowness(report: Report) -> Markup | None:
    """None where no cell was probed or waits for data."""
    told = [row for row in report.verdict.ranked_rows if row.step_parts and _is_told(row.step_parts)]
    rows = [_row(row) for row in told[:MOST_CELLS]]
    if not rows:
        return None
    return join(element("h3", "Why slow"), draw_table(COLUMNS, rows, caption=CAPTION))


def _is_told(parts: StepParts) -> bool:
    return parts.is_probed or is_wait_named(parts)


def _row(row: CellRow) -> list[str | None]:
    parts = row.step_parts
    assert parts is not None
    return [
        row.label,
        seconds_text(parts.step.mean),
        share_of_step_text(wait_share(parts)),
        *_of_probes(divide_step(parts)),
        seconds_text(row.overhead_seconds),
    ]


def _of_probes(shares: StepShares | None) -> list[str]:
    if shares is None:
        return [UNKNOWN] * 4
    return [*(_text(name, shares) for name in shares.parts), share_of_step_text(shares.rest)]


def _text(part: str, shares: StepShares) -> str:
    share = shares.parts[part]
    if share is None:
        return UNKNOWN
    is_noise = part in shares.noise
    return f"noise (± {share_text(share.half_width, digits=0)})" if is_noise else share_of_step_text(share)
