"""`traindyno report --receipt`: the cost of an execution by attempt and by phase."""

from collections.abc import Iterator
from decimal import Decimal

from rich.table import Table

from traindyno.cli.inputs.execution_receipt import ExecutionReceipt
from traindyno.cli.output import SIMULATED, Terminal, titled_table
from traindyno.core.costs.quantity_text import (
    UNKNOWN,
    counted,
    exact_usd_text,
    seconds_text,
    to_cents,
    usd_text,
)
from traindyno.core.costs.receipt import Receipt, ReceiptLine, exact_phase_usd
from traindyno.core.jobs.outcome import outcome_text
from traindyno.core.measurement.run_phases import phase_text

WIDEST = 64


def print_receipt(console: Terminal, execution: ExecutionReceipt) -> None:
    if not execution.receipt.lines:
        none = "no cost, because no training job was started"
        why = next(summary(execution)) if execution.may_lack_jobs else none
        console.print(f"{execution.execution_id}: {why}")
        return
    if execution.is_simulated:
        console.print(SIMULATED)
    numbers = (">billed", ">instances", ">price per hour", ">computed", ">cost")
    table = titled_table(
        f"{execution.execution_id}: training jobs", "job and its phases~", "outcome", *numbers
    )
    table.show_lines = True
    table.columns[0].max_width = WIDEST
    for line in execution.receipt.lines:
        table.add_row(*_cells(line, execution.receipt))
    console.print(table)
    if execution.receipt.phases:
        console.print()
        console.print(_phases(execution))
    console.print()
    for text in summary(execution):
        console.print(text)


def summary(execution: ExecutionReceipt) -> Iterator[str]:
    """The total, and the reasons why it is not final."""
    receipt = execution.receipt
    of_unknown = (line.job_name for line in receipt.lines if line.usd is None)
    unknown = [name for name in dict.fromkeys(of_unknown) if name not in execution.running_jobs]
    jobs = counted(receipt.job_count, "training job")
    exact = sum(
        (line.exact_usd for line in receipt.lines if line.exact_usd is not None), Decimal(0)
    )
    computed = (
        f" (computed: {exact_usd_text(exact)})"
        if exact != receipt.known_usd and not receipt.is_small
        else ""
    )
    total = (
        f"total {usd_text(exact if receipt.is_small else receipt.known_usd)}{computed} for {jobs}"
    )
    if execution.is_final and not unknown:
        yield total
        return
    why = []
    if execution.running_jobs:
        why.append(
            f"{len(execution.running_jobs)} still running and billed "
            f"({', '.join(execution.running_jobs)})"
        )
    elif execution.may_lack_jobs:
        why.append("MiniStack ended while it ran, and jobs that it had not saved are missing")
    elif not execution.is_final:
        why.append("the execution is still running")
    if unknown:
        why.append(f"billed time or price unknown for {', '.join(unknown)}")
    yield f"{total} so far, not final: {', '.join(why)}"


def _cells(line: ReceiptLine, receipt: Receipt) -> tuple[str, ...]:
    paid = [
        f" ({usd_text(phase.usd)})" if phase.usd and not receipt.is_small else ""
        for phase in line.phases
    ]
    phases = ", ".join(
        f"{phase_text(phase.name)} {seconds_text(phase.seconds)}{usd}"
        for phase, usd in zip(line.phases, paid, strict=True)
    )
    price = line.usd_per_instance_hour
    place = f", {line.place_text} in the job" if line.place_text else ""
    return (
        (
            f"{line.job_name}\n"
            f"{line.label}, attempt {line.attempt}{place}\n"
            f"{phases or 'phases unknown'}"
        ),
        outcome_text(line.outcome),
        UNKNOWN if line.billable_seconds is None else f"{line.billable_seconds.normalize():f} s",
        f"{line.instance_count} × {line.instance}",
        UNKNOWN if price is None else exact_usd_text(price),
        UNKNOWN if line.exact_usd is None else exact_usd_text(line.exact_usd),
        usd_text(receipt.shown_usd(line)),
    )


def _phases(execution: ExecutionReceipt) -> Table:
    table = titled_table("by phase", "phase", ">time", ">cost")
    exact = exact_phase_usd(execution.receipt.lines) if execution.receipt.is_small else {}
    for phase in execution.receipt.phases:
        table.add_row(
            phase_text(phase.name),
            seconds_text(phase.seconds),
            usd_text(
                exact.get(phase.name, Decimal(0)) if exact else phase.usd and to_cents(phase.usd)
            ),
        )
    table.add_section()
    table.add_row(
        "all",
        "",
        usd_text(sum(exact.values(), Decimal(0)) if exact else execution.receipt.known_usd),
    )
    return table
