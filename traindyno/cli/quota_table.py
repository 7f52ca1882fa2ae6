"""The quotas that a plan was made with, and where each number in use comes from."""

from rich.table import Table

from traindyno.cli.plan_inputs import PlanInputs
from traindyno.core.costs.quantity_text import UNKNOWN, count_text, seconds_text
from traindyno.core.planning.quotas import QuotaReading, UsageSource

SOURCES = {
    UsageSource.METRIC: "its usage metric",
    UsageSource.JOBS: "training jobs",
    UsageSource.FILE: "the file",
}


def quota_table(inputs: PlanInputs) -> Table:
    table = Table(title=f"quotas in {inputs.region}", title_justify="left", pad_edge=False)
    table.add_column("quota")
    table.add_column("code")
    for heading in ("applied", "AWS's default", "in use"):
        table.add_column(heading, justify="right")
    table.add_column("known from")
    for reading in inputs.quotas.values():
        applied = "none" if reading.applied is None else f"{reading.applied:,}"
        counts = reading.quota.counts is not None
        table.add_row(
            reading.quota.name,
            reading.quota.code or UNKNOWN,
            applied,
            count_text(reading.default),
            count_text(reading.in_use) if counts else "-",
            _known_from(reading, inputs.read_at),
        )
    return table


def _known_from(reading: QuotaReading, read_at: float) -> str:
    if reading.in_use_source is None:
        return ""
    if reading.in_use_as_of is None:
        return SOURCES[reading.in_use_source]
    age_seconds = max(0.0, read_at - reading.in_use_as_of)
    age = "now" if age_seconds < 1 else f"{seconds_text(age_seconds)} ago"
    return f"{SOURCES[reading.in_use_source]}, {age}"
