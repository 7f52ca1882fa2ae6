"""What a deployment of a trained model costs: the same figures for the receipt, its JSON and the list of endpoints."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from traindyno.core.serving.deployment import Hosting
from traindyno.core.serving.latency import usd_per_million_requests
from traindyno.store.model_deployments import DeploymentRow, DeploymentStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentCost:
    """Times are epoch seconds; an amount of None is unknown.

    ``usd_per_hour`` is the price of all instances. ``since`` is the creation, ``until`` the removal; it is None while
    billing may continue. ``expires_at`` is None for a kept endpoint; ``ends_at`` is the first of its limits, with that
    of ``max_usd``. ``spent_usd`` is at most what is billed until now or ``until``, ``most_usd`` the cost of its longest
    life. ``message``: why it failed or was removed. ``usd_per_million_requests`` is the cost if the endpoint answers
    one request after the other without a pause.
    """

    name: str
    hosting: Hosting
    status: DeploymentStatus
    usd_per_hour: Decimal | None
    since: float
    until: float | None
    expires_at: float | None
    ends_at: float | None
    max_usd: Decimal | None
    spent_usd: Decimal | None
    most_usd: Decimal | None
    usd_per_million_requests: Decimal | None
    message: str | None


def cost_of(row: DeploymentRow, now: float) -> DeploymentCost:
    deployment = row.deployment
    per_hour = deployment.all_instances_usd_per_hour
    return DeploymentCost(
        name=deployment.name,
        hosting=deployment.hosting,
        status=row.status,
        usd_per_hour=per_hour,
        since=row.created_at,
        until=row.removed_at,
        expires_at=deployment.expires_at,
        ends_at=row.ends_at,
        max_usd=deployment.max_usd,
        spent_usd=row.cost_so_far_usd(now),
        most_usd=row.most_usd,
        usd_per_million_requests=usd_per_million_requests(per_hour, row.latency),
        message=row.message,
    )


def costs_of(execution_id: str, rows: Iterable[DeploymentRow], now: float) -> tuple[DeploymentCost, ...]:
    """The costs of the deployments of this execution's models, the oldest first."""
    ordered = sorted(rows, key=lambda row: row.created_at)
    return tuple(cost_of(row, now) for row in ordered if row.deployment.execution_id == execution_id)
