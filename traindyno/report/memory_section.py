"""The estimated memory of a device, beside the measured memory."""

from traindyno.core.costs.quantity_text import UNKNOWN, bytes_text, number_text
from traindyno.core.planning.memory import CellMemory
from traindyno.core.verdict.report_data import Report
from traindyno.report.markup import Markup, element
from traindyno.report.table import Column, draw_table

COLUMNS = [
    Column(heading="Cell"),
    Column(heading="Estimate", is_number=True),
    Column(heading="Measured", is_number=True),
    Column(heading="Estimate ÷ measured", is_number=True),
    Column(heading="Device", is_number=True),
    Column(heading="Would fit with"),
]
CAPTION = (
    "Peak memory of one device. The estimate runs the training code on tensors without values; the CUDA context, "
    "NCCL's buffers and fragmentation are not in it. Measured: the most that PyTorch had allocated on a device, over "
    "all trials."
)


def draw_memory(report: Report) -> Markup | None:
    """None where nothing was estimated."""
    if not report.memory:
        return None
    rows = [_row(report, each) for each in report.memory]
    return element("section", element("h2", "Memory"), draw_table(COLUMNS, rows, caption=CAPTION), id="memory")


def _row(report: Report, memory: CellMemory) -> list[str | None]:
    row = report.verdict.row(memory.cell_id)
    finding = memory.finding
    estimated = finding.estimate.peak_bytes if finding.estimate else None
    measured = row.peak_memory_bytes if row.trials else None
    ratio = number_text(estimated / measured) if estimated and measured else UNKNOWN
    helps = "; ".join(remedy.text() for remedy in finding.remedies)
    return [
        row.label,
        bytes_text(estimated) if estimated else finding.why_unknown,
        bytes_text(measured),
        ratio,
        bytes_text(memory.device_bytes),
        helps or "–",
    ]
