"""The table of proposed degrees of strategy mesh in a terminal."""

from collections.abc import Sequence

from rich.table import Table

from traindyno.cli.output import Terminal
from traindyno.core.costs.quantity_text import bytes_text
from traindyno.core.planning.compositions import Proposal
from traindyno.core.suite.suite import Cell

HEADINGS = (
    *("replicate", "shard", "tensor", "pipeline"),
    *("batch", "micro-batches", "peak", "parameters", "optimizer", "activations"),
)
NONE_POSSIBLE = "no composition of strategy mesh is possible for the baseline's model, batch and devices"


def print_compositions(console: Terminal, baseline: Cell, proposals: Sequence[Proposal]) -> None:
    console.print()
    if not proposals:
        console.print(NONE_POSSIBLE)
        return
    devices = f"{baseline.settings.instance_count} × {baseline.settings.instance}"
    title = f"degrees of strategy mesh on {devices}, memory of one device, estimated"
    table = Table(title=title, title_justify="left", pad_edge=False)
    for heading in HEADINGS:
        table.add_column(heading, justify="right")
    table.add_column("fits", overflow="fold")
    for each in proposals:
        table.add_row(*_cells(each))
    console.print(table)
    console.print(
        "note: each trains the baseline's global batch; first those that fit, then those that divide a replica least"
    )


def _cells(proposal: Proposal) -> tuple[str, ...]:
    degrees, settings, finding = proposal.degrees, proposal.settings, proposal.finding
    sizes_of_mesh = (degrees.replicate, degrees.shard, degrees.tensor, degrees.pipeline)
    counts = (*sizes_of_mesh, settings.batch_size_per_device, settings.micro_batches)
    estimate = finding.estimate
    if estimate is None:
        return (*map(str, counts), "", "", "", "", finding.why_unknown or "unknown")
    sizes = (estimate.peak_bytes, estimate.parameter_bytes, estimate.optimizer_bytes, estimate.activation_bytes)
    return (*map(str, counts), *map(bytes_text, sizes), "no" if finding.is_too_large(settings.instance) else "yes")
