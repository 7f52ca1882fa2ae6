"""A deployment as text: its cost before it starts, the measurements afterwards, and the list of all deployments."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from rich.table import Table

from traindyno.cli.inputs.deployment_cost import DeploymentCost, cost_of
from traindyno.core.costs.money import exact_usd_text
from traindyno.core.costs.quantity_text import DAY, HOUR, UNKNOWN, seconds_text, usd_text
from traindyno.core.documents.stored import to_document
from traindyno.core.serving.deployment import Hosting, ModelDeployment
from traindyno.core.serving.latency import Latency, usd_per_million_requests
from traindyno.core.serving.lifetime import NOTICE_SECONDS, ends_at, most_usd
from traindyno.store.model_deployments import DeploymentRow

# Characters of the first line of a message in a line about costs
REASON_LENGTH = 200
SEQUENTIAL = "with one request at a time"
AGREE = "{count} answers agree with the training job's own on its evaluation samples"


def place_text(deployment: ModelDeployment) -> str:
    """Where it runs: instances, or the memory of a serverless endpoint."""
    if deployment.hosting is Hosting.SERVERLESS:
        return f"serverless, {deployment.memory_mib} MiB"
    return f"{deployment.instance_count} × {deployment.instance_type}"


def lines_before(deployment: ModelDeployment, earlier: DeploymentRow | None, now: float) -> Iterator[str]:
    kind = "transform job" if deployment.hosting is Hosting.TRANSFORM else "endpoint"
    yield f"deploying run {deployment.run_id} of {deployment.execution_id} as {kind} {deployment.name}"
    yield f"on {place_text(deployment)}: {_price_text(deployment)}"
    yield _end_text(deployment, now)
    if deployment.is_endpoint:
        yield _expected_text(deployment, earlier)
    else:
        yield "a job over the training job's evaluation samples runs first; the transform starts if its answers agree"


def lines_after(row: DeploymentRow, now: float) -> Iterator[str]:
    deployment = row.deployment
    if not deployment.is_endpoint:
        cost = usd_text(row.cost_so_far_usd(now))
        yield AGREE.format(count=row.checked_samples)
        yield f"{deployment.name} has completed: {seconds_text(row.billed_seconds)} of instances, cost {cost}"
        return
    yield f"{deployment.name} is in service"
    yield AGREE.format(count=row.checked_samples)
    if row.latency:
        yield latency_text(row.latency)
    per_hour = deployment.all_instances_usd_per_hour
    million = usd_per_million_requests(per_hour, row.latency)
    yield f"cost: {usd_text(per_hour)} per hour, {usd_text(million)} per million requests {SEQUENTIAL}"
    yield f"it has cost {usd_text(row.cost_so_far_usd(now))} so far{_most_text(row.most_usd, row.ends_at)}"


def closing_text(row: DeploymentRow, now: float) -> str:
    """What it cost: the time of its instances, or, if that is unknown, its time from creation to removal."""
    usd = row.cost_so_far_usd(now)
    bound = "" if usd is None or row.billed_seconds is not None else " at most"
    return f"it cost {usd_text(usd)}{bound}"


def latency_text(latency: Latency) -> str:
    percentiles = {"p50": latency.p50_seconds, "p90": latency.p90_seconds, "p99": latency.p99_seconds}
    shown = ", ".join(f"{name} {seconds_text(seconds)}" for name, seconds in percentiles.items())
    return f"latency of {latency.requests} requests, {SEQUENTIAL}: {shown}"


def deployments_table(rows: Iterable[DeploymentRow], now: float) -> Table:
    table = Table(title="endpoints and transform jobs", title_justify="left", pad_edge=False)
    table.add_column("name", overflow="fold")
    for heading in ("on", "status", "owner", "expires"):
        table.add_column(heading)
    for heading in ("per hour", "p50", "per million", "cost so far"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*_cells(row, now))
    return table


def cost_line(cost: DeploymentCost) -> str:
    """A line below the receipt of an execution, whose total counts training jobs only."""
    kind = "transform job" if cost.hosting is Hosting.TRANSFORM else "endpoint"
    so_far = " so far" if cost.until is None else ""
    rate = f" at {usd_text(cost.usd_per_hour)} per hour" if cost.until is None and cost.usd_per_hour is not None else ""
    most = _most_text(cost.most_usd, cost.ends_at) if cost.until is None else ""
    why = f": {cost.message.splitlines()[0][:REASON_LENGTH]}" if cost.message and cost.until is not None else ""
    return f"in addition, {kind} {cost.name} cost {usd_text(cost.spent_usd)}{so_far}{rate}, {cost.status}{most}{why}"


def _most_text(usd: Decimal | None, ends_at: float | None) -> str:
    if ends_at is None:
        return ""
    return f", {usd_text(usd)} at most: the lab ends it after {_time_text(ends_at)}"


def row_document(row: DeploymentRow, now: float) -> dict[str, Any]:
    """The row's document without the token, which answers the waiting task."""
    document: dict[str, Any] = to_document(row)
    return {
        **{name: value for name, value in document.items() if name != "token"},
        "cost": to_document(cost_of(row, now)),
    }


def _cells(row: DeploymentRow, now: float) -> tuple[str, ...]:
    deployment = row.deployment
    per_hour = deployment.all_instances_usd_per_hour
    return (
        deployment.name,
        place_text(deployment),
        row.status,
        deployment.owner,
        _time_text(row.ends_at),
        usd_text(per_hour),
        seconds_text(row.latency.p50_seconds) if row.latency else UNKNOWN,
        usd_text(usd_per_million_requests(per_hour, row.latency)),
        usd_text(row.cost_so_far_usd(now)),
    )


def _price_text(deployment: ModelDeployment) -> str:
    if deployment.hosting is Hosting.SERVERLESS:
        return "a serverless endpoint bills by the time of its requests; this price is unknown to Traindyno"
    usd = deployment.all_instances_usd_per_hour
    if usd is None:
        return "the price per hour is unknown"
    return f"{usd_text(usd)} per hour, {usd_text(_times(usd, DAY))} per day ({deployment.price_source})"


def _expected_text(deployment: ModelDeployment, earlier: DeploymentRow | None) -> str:
    million = usd_per_million_requests(deployment.all_instances_usd_per_hour, earlier.latency if earlier else None)
    if earlier is None or million is None:
        return "cost per million requests: unknown until the latency of this model is measured on this type"
    return f"expected: {usd_text(million)} per million requests {SEQUENTIAL}, from {earlier.deployment.name}"


def _end_text(deployment: ModelDeployment, now: float) -> str:
    """When it ends, and what its longest life costs."""
    end = ends_at(deployment, now)
    if end is None:
        month = _times(deployment.all_instances_usd_per_hour, 30 * DAY)
        return f"it is kept, and billed, until traindyno undeploy: {usd_text(month)} in 30 days"
    ends = "deletes it" if deployment.is_endpoint else "stops it, if it has not ended,"
    limit = f" (--max-usd {exact_usd_text(deployment.max_usd)})" if deployment.max_usd is not None else ""
    return (
        f"the lab {ends} within {seconds_text(NOTICE_SECONDS)} after {_time_text(end)};"
        f" it costs {usd_text(most_usd(deployment, now))} at most{limit}"
    )


def _times(usd_per_hour: Decimal | None, seconds: int) -> Decimal | None:
    return None if usd_per_hour is None else usd_per_hour * seconds / HOUR


def _time_text(at: float | None) -> str:
    return "kept" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"
