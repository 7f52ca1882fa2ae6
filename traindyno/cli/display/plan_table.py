"""The tables of a plan in a terminal: cells, lanes, quotas, memory, totals."""

from collections import Counter

from rich.table import Table

from traindyno.api.plan_inputs import PlanInputs
from traindyno.cli.display.plan_totals import ORDER_NOTE, job_table, jobs_of_plan, totals_table
from traindyno.cli.output import Terminal, titled_table
from traindyno.core.costs.quantity_text import (
    UNKNOWN,
    bytes_text,
    count_text,
    counted,
    exact_usd_text,
    seconds_text,
    share_text,
    usd_text,
)
from traindyno.core.planning.job_terms import run_terms
from traindyno.core.planning.lanes import LanePlan
from traindyno.core.planning.memory import OUTSIDE_BYTES
from traindyno.core.planning.plan import Plan
from traindyno.core.planning.quotas import UsageSource
from traindyno.core.suite.choices import Purchase
from traindyno.core.suite.suite import Suite

MOST_CELLS = 30
#: Columns below which the table of lanes has no room for its figures
NARROW = 100
LANE_HEADINGS = (
    "runs",
    "largest",
    "quota",
    "in use",
    "parallel",
    "waves",
    "price/h",
    "expected",
    "once",
    "worst case",
)
SOURCES = {
    UsageSource.JOBS: "training jobs",
    UsageSource.FILE: "the file",
}
MEMORY_HEADINGS = ("peak", "parameters", "optimizer", "activations", "device", "share")
OUTSIDE_NOTE = (
    f"a cell fits into a GPU if {bytes_text(OUTSIDE_BYTES)} remain for what no estimate contains: "
    "the CUDA context, the workspaces of libraries, fragmentation"
)
BATCH_NOTE = "batch: the largest batch per device that fits by the cell's estimate"


def print_plan(
    console: Terminal,
    suite: Suite,
    planned: Plan,
    inputs: PlanInputs,
    *,
    why_no_history: str | None,
) -> None:
    if len(planned.cells) <= MOST_CELLS:
        table = titled_table(
            f"{suite.name}: cells", "cell", "what varies~", "instances", ">one run at most"
        )
        prices = {lane.instance_type: lane.price for lane in planned.lanes}
        for cell in planned.cells:
            count = cell.settings.instance_count
            price = prices[cell.settings.instance]
            usd = (
                run_terms(cell.settings, suite).worst_case_usd(price.usd_per_hour)
                if price
                else None
            )
            table.add_row(
                cell.cell_id, cell.label, f"{count} × {cell.settings.instance}", usd_text(usd)
            )
        console.print(table)
    else:
        console.print(f"{suite.name}: {len(planned.cells)} cells, listed by --format json")
    if jobs_of_plan(suite, planned):
        console.print()
        console.print(job_table(suite, planned))
        console.print(f"note: {ORDER_NOTE}")
    console.print()
    lanes = titled_table("lanes", "instance", *(f">{heading}" for heading in LANE_HEADINGS))
    for name, *values in map(_lane_cells, planned.lanes):
        if console.width < NARROW:
            named = ", ".join(
                f"{heading} {value}" for heading, value in zip(LANE_HEADINGS, values, strict=True)
            )
            console.print(f"lane {name}: {named}")
        lanes.add_row(name, *values)
    if console.width >= NARROW:
        console.print(lanes)
    if inputs.quotas:
        console.print()
        console.print(_quotas(inputs))
    if planned.memory:
        console.print()
        print_memory(console, planned)
    console.print()
    console.print(totals_table(suite, planned, why_no_history))
    for note in planned.notes:
        console.print(f"note: {note}")


def _lane_cells(lane: LanePlan) -> tuple[str, ...]:
    quota = lane.quota
    return (
        f"{lane.instance_type} (spot)" if lane.purchase is Purchase.SPOT else lane.instance_type,
        str(lane.run_count),
        f"{lane.largest_instance_count} ×",
        count_text(quota.limit) if quota else "-",
        count_text(quota.in_use) if quota else "-",
        str(lane.concurrency) if lane.instances_at_once is None else f"{lane.instances_at_once} ×",
        str(lane.waves),
        exact_usd_text(lane.price.usd_per_hour) if lane.price else UNKNOWN,
        usd_text(lane.expected.usd),
        usd_text(lane.one_attempt_usd),
        usd_text(lane.worst_case_usd),
    )


def _quotas(inputs: PlanInputs) -> Table:
    headings = ("quota", "code", ">applied", ">AWS's default", ">in use", "known from")
    table = titled_table(f"quotas in {inputs.region}", *headings)
    for reading in inputs.quotas.values():
        applied = (
            "none"
            if reading.applied is None and reading.limit is not None
            else count_text(reading.applied)
        )
        counts = reading.quota.counts is not None
        known_from = "" if reading.in_use_source is None else SOURCES[reading.in_use_source]
        if known_from and reading.in_use_as_of is not None:
            age_seconds = max(0.0, inputs.read_at - reading.in_use_as_of)
            known_from += ", now" if age_seconds < 1 else f", {seconds_text(age_seconds)} ago"
        table.add_row(
            reading.quota.name,
            reading.quota.code or UNKNOWN,
            applied,
            count_text(reading.default),
            count_text(reading.in_use) if counts else "-",
            known_from,
        )
    return table


def print_memory(console: Terminal, planned: Plan) -> None:
    headings = (
        "cell",
        "what varies~",
        *(f">{heading}" for heading in MEMORY_HEADINGS),
        "fits",
        ">batch",
    )
    table = titled_table("memory of one device, estimated", *headings)
    cells = {cell.cell_id: cell for cell in planned.cells}
    estimated = [
        cell_memory for cell_memory in planned.memory if cell_memory.finding.estimate is not None
    ]
    for cell_memory in estimated:
        cell = cells[cell_memory.cell_id]
        estimate = cell_memory.finding.estimate
        assert estimate is not None
        sizes = (
            estimate.peak_bytes,
            estimate.parameter_bytes,
            estimate.optimizer_bytes,
            estimate.activation_bytes,
            cell_memory.device_bytes,
        )
        share = estimate.peak_bytes / cell_memory.device_bytes if cell_memory.device_bytes else None
        table.add_row(
            cell.cell_id,
            cell.label,
            *(bytes_text(size) for size in sizes),
            share_text(share, digits=0),
            "no" if cell_memory.finding.is_too_large(cell.settings.instance) else "yes",
            f"{cell_memory.finding.largest_batch:,}" if cell_memory.finding.largest_batch else "-",
        )
    if estimated:
        console.print(table)
        for note in (OUTSIDE_NOTE, BATCH_NOTE):
            console.print(f"note: {note}")
    unknown = Counter(cell_memory.finding.why_unknown for cell_memory in planned.memory)
    for reason, count in unknown.items():
        if reason:
            console.print(f"memory of {counted(count, 'cell')} not estimated: {reason}")
    for cell_memory in estimated:
        if cell_memory.finding.is_too_large(cells[cell_memory.cell_id].settings.instance):
            console.print(
                f"{cell_memory.cell_id}: is too large; what may help: "
                f"{cell_memory.finding.help_text}"
            )
