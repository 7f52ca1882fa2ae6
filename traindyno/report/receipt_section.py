"""The receipt: every attempt's billable seconds × instances × price, and their sum."""

from decimal import Decimal

from traindyno.core.attempt import Attempt
from traindyno.core.projection import cost_usd
from traindyno.core.quantity_text import number_text, usd_text
from traindyno.core.report_data import Report
from traindyno.core.run_result import RunResult
from traindyno.report.markup import Markup, element
from traindyno.report.table import Column, draw_table

COLUMNS = [
    Column(heading="Job"),
    Column(heading="Instance"),
    Column(heading="Outcome"),
    Column(heading="Billable s", is_number=True),
    Column(heading="Instances", is_number=True),
    Column(heading="$/h", is_number=True),
    Column(heading="Cost", is_number=True),
]


def draw_receipt(report: Report) -> Markup:
    lines = [(result, attempt) for result in report.results for attempt in result.attempts]
    costs = [_cost(result, attempt) for result, attempt in lines]
    total = sum((cost for cost in costs if cost is not None), Decimal(0)) if costs and None not in costs else None
    return element(
        "section",
        element("h2", "Receipt"),
        element(
            "details",
            element("summary", f"{len(lines)} jobs, total {usd_text(total)}"),
            draw_table(
                COLUMNS,
                [_row(result, attempt) for result, attempt in lines],
                caption="Billable seconds × instances × price ÷ 3600, job by job.",
                footer=["Total", None, None, None, None, None, usd_text(total)],
            ),
            open="open",
        ),
        id="receipt",
    )


def _row(result: RunResult, attempt: Attempt) -> list[str | None]:
    price = result.price.usd_per_instance_hour
    return [
        attempt.job_name,
        result.run.cell.settings.instance,
        (attempt.outcome.value.replace("_", " ") if attempt.outcome else attempt.error) or "unknown",
        number_text(attempt.billable_seconds, digits=6),
        str(result.run.cell.settings.instance_count),
        "unknown" if price is None else f"{price:f}",
        usd_text(_cost(result, attempt)),
    ]


def _cost(result: RunResult, attempt: Attempt) -> Decimal | None:
    if attempt.billable_seconds is None:
        return None
    settings = result.run.cell.settings
    return cost_usd(attempt.billable_seconds, settings.instance_count, result.price.usd_per_instance_hour)
