"""Endpoints as text: before and after a deployment, and as a table."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from rich.table import Table

from traindyno.cli.output import titled_table
from traindyno.core.costs.prices import SECONDS_PER_HOUR
from traindyno.core.costs.quantity_text import exact_usd_text, seconds_text, usd_text
from traindyno.core.documents.stored import to_document
from traindyno.core.serving.deployment import (
    NOTICE_SECONDS,
    ModelDeployment,
)
from traindyno.core.serving.samples import (
    Latency,
)

SEQUENTIAL = "with one request at a time"


def lines_before(deployment: ModelDeployment) -> Iterator[str]:
    yield (
        f"deploying run {deployment.run_id} of {deployment.execution_id} as endpoint "
        f"{deployment.name}"
    )
    limit = (
        f" (--max-usd {exact_usd_text(deployment.max_usd)})"
        if deployment.max_usd is not None
        else ""
    )
    yield f"on {deployment.instance_type}: {usd_text(deployment.usd_per_hour)} per hour"
    within = f"within {seconds_text(NOTICE_SECONDS)} after {time_text(deployment.ends_at)}"
    yield f"the lab deletes it {within}; it costs {usd_text(deployment.most_usd)} at most{limit}"


def lines_after(deployment: ModelDeployment, samples: int, latency: Latency) -> Iterator[str]:
    yield f"{deployment.name} is in service"
    yield f"{samples} answers agree with the training job's own on its evaluation samples"
    percentiles = (
        f"p50 {seconds_text(latency.p50_seconds)}, p99 {seconds_text(latency.p99_seconds)}"
    )
    yield f"latency of {latency.requests} requests, {SEQUENTIAL}, from this machine: {percentiles}"
    per_hour = deployment.usd_per_hour
    million = usd_text(_usd_per_million_requests(per_hour, latency))
    yield f"cost: {usd_text(per_hour)} per hour, {million} per million requests {SEQUENTIAL}"


def deployments_table(
    deployments: Mapping[str, ModelDeployment], statuses: Mapping[str, str], now: float
) -> Table:
    table = titled_table(
        "endpoints", "name~", "on", "status", "owner", "expires", "per hour", "cost so far"
    )
    for name, deployment in deployments.items():
        costs = usd_text(deployment.usd_per_hour), usd_text(deployment.usd_until(now))
        expires = time_text(deployment.ends_at)
        table.add_row(
            name, deployment.instance_type, statuses[name], deployment.owner, expires, *costs
        )
    return table


def deployment_figures(deployment: ModelDeployment, status: str, now: float) -> dict[str, Any]:
    """Figures of a deployment. Times are epoch seconds; an amount of None is unknown."""
    figures = {"status": status, "ends_at": deployment.ends_at, "most_usd": deployment.most_usd}
    figures_document: dict[str, Any] = to_document(
        {"deployment": deployment, **figures, "spent_usd": deployment.usd_until(now)}
    )
    return figures_document


def time_text(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"


def _usd_per_million_requests(usd_per_hour: Decimal | None, latency: Latency) -> Decimal | None:
    """The cost at an endpoint that answers one request after the other; None if the price is
    unknown.
    """
    if usd_per_hour is None:
        return None
    return usd_per_hour * Decimal(str(latency.mean_seconds)) * 1_000_000 / SECONDS_PER_HOUR
