"""What the execution cost, and the conditions of the measurement: versions, hosts, images, prices
and the suite.
"""

import gzip
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal

from traindyno.core.costs.quantity_text import (
    UNKNOWN,
    count_text,
    counted,
    exact_usd_text,
    seconds_text,
    usd_text,
)
from traindyno.core.costs.receipt import Receipt, ReceiptLine, write_receipt
from traindyno.core.costs.summarise import RUN_COLUMNS, run_columns
from traindyno.core.jobs.outcome import outcome_text
from traindyno.core.measurement.run_phases import phase_text
from traindyno.core.run.tokens import LABEL
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.suite_file import suite_document
from traindyno.core.verdict.report_data import Report, report_document
from traindyno.report.charts.phase_chart import phase_order
from traindyno.report.markup import Markup, columns, csv_text, download, draw_table, element

LINE_COLUMNS = columns(
    "Job", "Instance", "Ended as", "# Billable s", "# Instances", "# Price per hour", "# Cost"
)
PHASE_COLUMNS = columns("Phase", "# Time, all jobs", "# Cost")
LARGEST_PLAIN_BYTES = 2**18


def draw_receipt(report: Report) -> Markup:
    receipt = write_receipt([*report.preparations, *report.results])
    is_split = not receipt.is_small
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
                [
                    phase_text(phase.name),
                    seconds_text(phase.seconds),
                    usd_text(phase.usd) if is_split else "–",
                ]
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
                caption="Billable seconds × instances × price ÷ 3600, in cents that add up to the "
                "total.",
                footer=["Total", *[None] * (len(LINE_COLUMNS) - 2), total],
            ),
        ),
        id="receipt",
    )


def _row(line: ReceiptLine, receipt: Receipt) -> list[str | None]:
    price = line.usd_per_instance_hour
    cost = UNKNOWN if line.usd is None else usd_text(line.usd)
    if line.exact_usd is not None and receipt.is_small:
        cost = exact_usd_text(line.exact_usd)  # most lines would be zero cents
    name = f"{line.job_name} ({line.label})" if line.label == LABEL else line.job_name
    return [
        f"{line.job_name}, {line.place_text}: {line.run_id}" if line.place_text else name,
        line.instance,
        outcome_text(line.outcome),
        UNKNOWN if line.billable_seconds is None else f"{line.billable_seconds.normalize():,f}",
        str(line.instance_count),
        UNKNOWN if price is None else exact_usd_text(price),
        cost,
    ]


def draw_provenance(report: Report) -> Markup:
    rows = [row for cell in report.cells for row in _cell_rows(report, cell)]
    return element(
        "section",
        element("h2", "Environment and provenance"),
        element(
            "dl",
            *(
                element("div", element("dt", name), element("dd", value))
                for name, value in _report_rows(report)
            ),
            class_="formulas",
        ),
        element(
            "details",
            element("summary", "Environment of every cell"),
            draw_table(
                columns("Cell", "Fact", "Value"),
                rows,
                caption="As reported by the processes; all values if trials differ.",
            ),
        ),
        element(
            "details",
            element("summary", "The suite"),
            element(
                "pre",
                json.dumps(suite_document(report.suite), indent=2, ensure_ascii=False),
                tabindex=0,
            ),
        ),
        id="provenance",
    )


def _report_rows(report: Report) -> Iterator[tuple[str, str]]:
    yield "Suite", report.suite.name
    yield "Execution", report.execution_id
    yield "Written", datetime.fromtimestamp(report.created_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    yield from report.facts.items()
    prices = set()
    for result in report.results:
        price = result.price
        instance = result.run.cell.settings.instance
        known = ", ".join(filter(None, (price.purchase, price.region, price.date, price.source)))
        prices.add(
            f"{instance}: {usd_text(price.usd_per_instance_hour)} per "
            f"hour{f' ({known})' if known else ''}"
        )
    for line in sorted(prices):
        yield "Price", line
    for model in {
        result.measured.model
        for result in report.results
        if result.measured and result.measured.model
    }:
        per_token = UNKNOWN if model.flops_per_token is None else f"{model.flops_per_token:.4g}"
        formula = f" ({model.formula})" if model.formula else ""
        trained = "" if model.trained is None else f" of which {count_text(model.trained)} train,"
        yield (
            "Model",
            f"{count_text(model.parameters)} parameters,{trained} {per_token} FLOPs per "
            f"token{formula}",
        )


def _cell_rows(report: Report, cell: Cell) -> Iterator[list[str | None]]:
    results = [result for result in report.results if result.run.cell.cell_id == cell.cell_id]
    facts: dict[str, set[str]] = {}
    for environment in (result.environment for result in results if result.environment):
        own = {
            "processes": environment.world_size,
            "hosts": ", ".join(environment.hosts),
            **environment.facts,
        }
        for name, value in own.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            facts.setdefault(name, set()).add(text)
    images = {
        attempt.image_uri for result in results for attempt in result.attempts if attempt.image_uri
    }
    for name, values in {**facts, **({"image": images} if images else {})}.items():
        yield [cell.label, name, "; ".join(sorted(values))]


def draw_raw_data(report: Report) -> Markup:
    document = json.dumps(report_document(report), separators=(",", ":"), allow_nan=False).encode()
    name = "".join(
        letter if letter.isalnum() or letter in "-_" else "-" for letter in report.execution_id
    )
    everything = (document, f"{name}.json", "application/json;charset=utf-8", "Everything as JSON")
    if (
        len(document) > LARGEST_PLAIN_BYTES
    ):  # the page would be too large to open with hundreds of runs
        compressed = gzip.compress(document, mtime=0)
        everything = (
            compressed,
            f"{name}.json.gz",
            "application/gzip",
            "All data as compressed JSON",
        )
    rows = [[*run_columns(result).values()] for result in report.results]
    runs = csv_text(RUN_COLUMNS, rows)
    return element(
        "section",
        element("h2", "Data"),
        element(
            "p",
            download(*everything),
            " ",
            download(runs.encode(), f"{name}-runs.csv", "text/csv;charset=utf-8", "Runs as CSV"),
        ),
        id="data",
    )
