"""The sweep over deployments: finish those without an event, delete expired endpoints, record deleted ones."""

from dataclasses import dataclass
from typing import Protocol

from traindyno.aws.endpoints import Endpoints
from traindyno.lab.serving.finish_deployment import FinishDeploymentServices, finish_deployment
from traindyno.lab.serving.remove_endpoint import CancelServices, cancel_deployment
from traindyno.store.model_deployments import DeploymentRow, DeploymentRows, DeploymentStatus

# An event takes seconds; an older deployment that is still being created is described.
QUIET_SECONDS = 60
# Two sweeps in AWS: an endpoint that exists longer after its expiry was not deleted.
OVERDUE_SECONDS = 600
EXPIRED, GONE = "expired", "deleted outside of Traindyno"


class ReconcileEndpointsServices(FinishDeploymentServices, CancelServices, Protocol):
    deployments: DeploymentRows
    endpoints: Endpoints


@dataclass(frozen=True, slots=True, kw_only=True)
class SweptEndpoints:
    """``open`` deployments may still bill; ``overdue`` endpoints should have been deleted before this sweep."""

    open: int
    overdue: int
    removed: int


def sweep_endpoints(*, services: ReconcileEndpointsServices, now: float) -> SweptEndpoints:
    rows = [row for row in services.deployments.list_all() if row.is_open]
    overdue = [row for row in rows if row.is_expired(now - OVERDUE_SECONDS)]
    removed = sum(_settle(row, services, now) for row in rows)
    return SweptEndpoints(open=len(rows) - removed, overdue=len(overdue), removed=removed)


def _settle(row: DeploymentRow, services: ReconcileEndpointsServices, now: float) -> bool:
    """Whether the deployment was removed."""
    name = row.deployment.name
    if row.is_expired(now):
        return cancel_deployment(name, services=services, now=now, message=EXPIRED)
    if row.awaits_sagemaker and now - row.step_began_at > QUIET_SECONDS:
        finish_deployment(name, services=services, now=now)
        return False
    is_served = row.deployment.is_endpoint and row.status is DeploymentStatus.READY
    if is_served and services.endpoints.find_endpoint(name) is None:
        return cancel_deployment(name, services=services, now=now, message=GONE)
    return False
