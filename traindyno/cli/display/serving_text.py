"""A deployment as text: its cost before it starts, its measurements, its part of a receipt, and the list of all."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from rich.table import Table

from traindyno.core.costs.money import exact_usd_text
from traindyno.core.costs.quantity_text import DAY, HOUR, UNKNOWN, seconds_text, usd_text
from traindyno.core.documents.stored import to_document
from traindyno.core.serving.deployment import NOTICE_SECONDS, ModelDeployment
from traindyno.core.serving.samples import usd_per_million_requests
from traindyno.store.deployments import DeploymentRow

SEQUENTIAL = "with one request at a time"


def lines_before(deployment: ModelDeployment, rows: Iterable[DeploymentRow], now: float) -> Iterator[str]:
    """``rows``: all deployments; the latest of the same cell and instance type gives the expected cost of requests."""
    per_hour, count = deployment.all_instances_usd_per_hour, deployment.instance_count
    yield f"deploying run {deployment.run_id} of {deployment.execution_id} as endpoint {deployment.name}"
    price = f"{usd_text(per_hour)} per hour, {usd_text(_times(per_hour, DAY))} per day ({deployment.price_source})"
    yield f"on {count} × {deployment.instance_type}: {'the price per hour is unknown' if per_hour is None else price}"
    end = deployment.ends_at(now)
    if end is None:
        month = usd_text(_times(per_hour, 30 * DAY))
        yield f"it is kept, and billed, until traindyno undeploy: {month} in 30 days"
    else:
        limit = f" (--max-usd {exact_usd_text(deployment.max_usd)})" if deployment.max_usd is not None else ""
        most = usd_text(deployment.most_usd(now))
        within = f"within {seconds_text(NOTICE_SECONDS)} after {_time_text(end)}"
        yield f"the lab deletes it {within}; it costs {most} at most{limit}"
    same = [row for row in rows if row.latency and _place(row.deployment) == _place(deployment)]
    earlier = max(same, key=lambda row: row.created_at, default=None)
    million = usd_per_million_requests(per_hour, earlier.latency) if earlier else None
    if earlier is None or million is None:
        yield "cost per million requests: unknown until the latency of this model is measured on this type"
    else:
        yield f"expected: {usd_text(million)} per million requests {SEQUENTIAL}, from {earlier.deployment.name}"


def lines_after(row: DeploymentRow, now: float) -> Iterator[str]:
    per_hour = row.deployment.all_instances_usd_per_hour
    yield f"{row.deployment.name} is in service"
    yield f"{row.checked_samples} answers agree with the training job's own on its evaluation samples"
    if row.latency:
        found = row.latency
        percentiles = {"p50": found.p50_seconds, "p90": found.p90_seconds, "p99": found.p99_seconds}
        shown = ", ".join(f"{name} {seconds_text(seconds)}" for name, seconds in percentiles.items())
        yield f"latency of {found.requests} requests, {SEQUENTIAL}, from this machine: {shown}"
    million = usd_per_million_requests(per_hour, row.latency)
    yield f"cost: {usd_text(per_hour)} per hour, {usd_text(million)} per million requests {SEQUENTIAL}"
    yield f"it has cost {usd_text(row.cost_so_far_usd(now))} so far{_most_text(row)}"


def closing_text(row: DeploymentRow, now: float) -> str:
    usd = row.cost_so_far_usd(now)
    return f"it cost {usd_text(usd)}{'' if usd is None else ' at most'}"


def receipt_line(row: DeploymentRow, now: float) -> str:
    """A line below the receipt of an execution, whose total counts training jobs only."""
    per_hour, spent = row.deployment.all_instances_usd_per_hour, usd_text(row.cost_so_far_usd(now))
    begin = f"in addition, endpoint {row.deployment.name} cost {spent}"
    if row.is_open:
        rate = "" if per_hour is None else f" at {usd_text(per_hour)} per hour"
        return f"{begin} so far{rate}, {row.status}{_most_text(row)}"
    return f"{begin}, {row.status}{f': {row.message.splitlines()[0][:200]}' if row.message else ''}"


def deployments_table(rows: Iterable[DeploymentRow], now: float) -> Table:
    table = Table(title="endpoints", title_justify="left", pad_edge=False)
    table.add_column("name", overflow="fold")
    for heading in ("on", "status", "owner", "expires"):
        table.add_column(heading)
    for heading in ("per hour", "p50", "per million", "cost so far"):
        table.add_column(heading, justify="right")
    for row in rows:
        deployment, per_hour = row.deployment, row.deployment.all_instances_usd_per_hour
        table.add_row(
            deployment.name,
            f"{deployment.instance_count} × {deployment.instance_type}",
            row.status,
            deployment.owner,
            _time_text(row.ends_at),
            usd_text(per_hour),
            seconds_text(row.latency.p50_seconds) if row.latency else UNKNOWN,
            usd_text(usd_per_million_requests(per_hour, row.latency)),
            usd_text(row.cost_so_far_usd(now)),
        )
    return table


def row_document(row: DeploymentRow, now: float) -> dict[str, Any]:
    document: dict[str, Any] = to_document(row)
    return {**document, "status": row.status, "cost": cost_document(row, now)}


def cost_document(row: DeploymentRow, now: float) -> dict[str, Any]:
    """The figures of a receipt. Times are epoch seconds; an amount of None is unknown."""
    deployment = row.deployment
    per_hour = deployment.all_instances_usd_per_hour
    figures = {
        "name": deployment.name,
        "status": row.status,
        "usd_per_hour": per_hour,
        "since": row.created_at,
        "until": row.removed_at,
        "expires_at": deployment.expires_at,
        "ends_at": row.ends_at,
        "max_usd": deployment.max_usd,
        "spent_usd": row.cost_so_far_usd(now),
        "most_usd": row.most_usd,
        "usd_per_million_requests": usd_per_million_requests(per_hour, row.latency),
        "message": row.message,
    }
    return {name: to_document(value) for name, value in figures.items()}


def _place(deployment: ModelDeployment) -> tuple[str, str, str]:
    return deployment.execution_id, deployment.cell_id, deployment.instance_type


def _most_text(row: DeploymentRow) -> str:
    if row.ends_at is None:
        return ""
    return f", {usd_text(row.most_usd)} at most: the lab ends it after {_time_text(row.ends_at)}"


def _times(usd_per_hour: Decimal | None, seconds: int) -> Decimal | None:
    return None if usd_per_hour is None else usd_per_hour * seconds / HOUR


def _time_text(at: float | None) -> str:
    return "kept" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"
