"""The memory of a plan's cells in a terminal: estimate, device, and what makes a cell fit."""

from rich.console import Console
from rich.table import Table

from traindyno.core.costs.quantity_text import UNKNOWN, bytes_text, share_text
from traindyno.core.planning.fitting_batch import fitting_batch
from traindyno.core.planning.memory import OUTSIDE_BYTES, CellMemory, usable_memory_bytes
from traindyno.core.planning.plan import Plan
from traindyno.core.suite.suite import Cell

HEADINGS = ("peak", "parameters", "optimizer", "activations", "device", "share")
OUTSIDE = (
    f"a cell fits into a GPU if {bytes_text(OUTSIDE_BYTES)} remain for what no estimate contains: the CUDA context, the"
    " workspaces of libraries, fragmentation"
)
BATCH = "batch: a batch per device that fits by the cell's estimate; a larger one may fit too"


def print_memory(console: Console, planned: Plan) -> None:
    table = Table(title="memory of one device, estimated", title_justify="left", pad_edge=False)
    table.add_column("cell")
    table.add_column("what varies", overflow="fold")
    for heading in HEADINGS:
        table.add_column(heading, justify="right")
    table.add_column("fits")
    table.add_column("batch", justify="right")
    cells = {cell.cell_id: cell for cell in planned.cells}
    for each in planned.memory:
        cell = cells[each.cell_id]
        table.add_row(cell.cell_id, cell.label, *_numbers(each), _fits(each, cell), _batch(each, cell))
    console.print(table)
    for note in (OUTSIDE, BATCH):
        console.print(f"note: {note}", markup=False)
    for line in _lines(planned):
        console.print(line, markup=False)


def _numbers(memory: CellMemory) -> tuple[str, ...]:
    estimate, device = memory.finding.estimate, bytes_text(memory.device_bytes)
    if estimate is None:
        return (*(UNKNOWN for _ in range(4)), device, UNKNOWN)
    parts = (estimate.peak_bytes, estimate.parameter_bytes, estimate.optimizer_bytes, estimate.activation_bytes)
    share = estimate.peak_bytes / memory.device_bytes if memory.device_bytes else None
    return (*map(bytes_text, parts), device, share_text(share, digits=0))


def _fits(memory: CellMemory, cell: Cell) -> str:
    if memory.finding.estimate is None or memory.device_bytes is None:
        return UNKNOWN
    return "no" if memory.finding.is_too_large(cell.settings.instance) else "yes"


def _batch(memory: CellMemory, cell: Cell) -> str:
    usable_bytes = usable_memory_bytes(cell.settings.instance)
    batch = fitting_batch(memory.finding.estimate, cell.settings, usable_bytes)
    return "-" if batch is None else f"{batch:,}"


def _lines(planned: Plan) -> list[str]:
    """Why a cell has no estimate, and the changes that would make a cell fit."""
    lines = []
    instances = {cell.cell_id: cell.settings.instance for cell in planned.cells}
    for each in planned.memory:
        if each.finding.why_unknown:
            lines.append(f"{each.cell_id}: no estimate: {each.finding.why_unknown}")
        if each.finding.is_too_large(instances[each.cell_id]):
            helps = "; ".join(remedy.text() for remedy in each.finding.remedies) or "none of the changes tried"
            lines.append(f"{each.cell_id}: would fit with {helps}")
    return lines
