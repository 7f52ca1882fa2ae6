"""The receipt: every attempt's billable seconds × instances × price, and what each phase cost."""

from decimal import Decimal

from traindyno.core.costs.quantity_text import UNKNOWN, counted, exact_usd_text, seconds_text, usd_text
from traindyno.core.costs.receipt import Receipt, ReceiptLine, write_receipt
from traindyno.core.suite.preparation import LABEL
from traindyno.core.verdict.report_data import Report
from traindyno.report.charts.phase_chart import phase_order, phase_text
from traindyno.report.markup import Markup, columns, draw_table, element

# Below this total, cents are too coarse to be divided among jobs and phases.
SMALLEST_SPLIT_USD = Decimal(1)
LINE_COLUMNS = columns(*("Job", "Instance", "Ended as", "# Billable s", "# Instances", "# Price per hour", "# Cost"))
PHASE_COLUMNS = columns("Phase", "# Time, all jobs", "# Cost")


def draw_receipt(report: Report) -> Markup:
    receipt = write_receipt([*report.preparations, *report.results])
    is_split = receipt.known_usd >= SMALLEST_SPLIT_USD
    exact = [line.exact_usd for line in receipt.lines if line.exact_usd is not None]
    exact_usd = sum(exact, Decimal(0)) if len(exact) == len(receipt.lines) else None
    total = usd_text(receipt.total_usd if is_split else exact_usd)
    count = counted(receipt.job_count, "job")
    if any(line.place is not None for line in receipt.lines):
        count += f", {len(receipt.lines)} parts"
    return element(
        "section",
        element("h2", "Receipt"),
        draw_table(
            PHASE_COLUMNS,
            [
                [phase_text(phase.name), seconds_text(phase.seconds), usd_text(phase.usd) if is_split else "–"]
                for phase in sorted(receipt.phases, key=lambda phase: phase_order(phase.name))
                if phase.seconds
            ],
            caption="Billed phases of all jobs; waiting and starting are not billed.",
            footer=["Total", None, total],
        ),
        element(
            "details",
            element("summary", count),
            draw_table(
                LINE_COLUMNS,
                [_row(line, receipt) for line in receipt.lines],
                caption="Billable seconds × instances × price ÷ 3600, in cents that add up to the total.",
                footer=["Total", *[None] * (len(LINE_COLUMNS) - 2), total],
            ),
        ),
        id="receipt",
    )


def _row(line: ReceiptLine, receipt: Receipt) -> list[str | None]:
    price, cost = line.usd_per_instance_hour, UNKNOWN if line.usd is None else usd_text(line.usd)
    if line.exact_usd is not None and receipt.known_usd < SMALLEST_SPLIT_USD:
        cost = exact_usd_text(line.exact_usd)  # most lines would be zero cents
    name = f"{line.job_name} ({line.label})" if line.label == LABEL else line.job_name
    return [
        f"{line.job_name}, {line.place_text}: {line.run_id}" if line.place_text else name,
        line.instance,
        line.outcome.replace("_", " "),
        UNKNOWN if line.billable_seconds is None else f"{line.billable_seconds.normalize():,f}",
        str(line.instance_count),
        UNKNOWN if price is None else exact_usd_text(price),
        cost,
    ]
