"""The sweep over deployments: end those whose time or amount is used up, finish those without an event, record deleted
ones.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from traindyno.aws.client_errors import AwsError
from traindyno.aws.endpoints import Endpoints
from traindyno.core.serving.deployment import check_job_name
from traindyno.core.serving.lifetime import NOTICE_SECONDS
from traindyno.lab.serving.finish_deployment import FinishDeploymentServices, finish_deployment
from traindyno.lab.serving.remove_endpoint import (
    CancelServices,
    cancel_deployment,
    delete_resources,
    remove_endpoint,
    stop_jobs,
)
from traindyno.store.model_deployments import DeploymentRow, DeploymentRows, DeploymentStatus

# An event takes seconds; an older deployment that is still being created is described.
QUIET_SECONDS = 60
# A call of DeployModel that copies a large model may create the endpoint 15 minutes after the deployment was removed.
# SageMaker refuses to delete an endpoint while it is created, which may take an hour.
LATE_SECONDS = 7200
GONE = "deleted outside of Traindyno"


class ReconcileEndpointsServices(FinishDeploymentServices, CancelServices, Protocol):
    deployments: DeploymentRows
    endpoints: Endpoints


@dataclass(frozen=True, slots=True, kw_only=True)
class SweptEndpoints:
    """``open`` deployments may still bill; ``overdue`` ones should have been ended before this sweep."""

    open: int
    overdue: int
    removed: int


def sweep_endpoints(*, services: ReconcileEndpointsServices, now: float) -> SweptEndpoints:
    """Raises the first error after all deployments: one that can't be read or ended does not keep the others."""
    errors: list[Exception] = []
    found = list(services.deployments.list_all(unreadable=errors))
    rows = sorted((row for row in found if row.is_open), key=lambda row: not row.is_expired(now))
    overdue = [row for row in rows if row.is_expired(now - NOTICE_SECONDS)]
    removed = sum(_tried(_settle, row, services, now, errors) for row in rows)
    for row in found:
        _tried(_delete_late, row, services, now, errors)
    if errors:
        raise errors[0]
    return SweptEndpoints(open=len(rows) - removed, overdue=len(overdue), removed=removed)


def _tried(
    work: Callable[[DeploymentRow, ReconcileEndpointsServices, float], bool],
    row: DeploymentRow,
    services: ReconcileEndpointsServices,
    now: float,
    errors: list[Exception],
) -> bool:
    try:
        return work(row, services, now)
    except AwsError as error:
        errors.append(error)
        return False


def _settle(row: DeploymentRow, services: ReconcileEndpointsServices, now: float) -> bool:
    """Whether the deployment was removed."""
    name = row.deployment.name
    if row.is_expired(now):
        return _end(row, services, now)
    if row.awaits_sagemaker and now - row.step_began_at > QUIET_SECONDS:
        finish_deployment(name, services=services, now=now)
        return False
    is_served = row.deployment.is_endpoint and row.status is DeploymentStatus.READY
    if is_served and services.endpoints.find_endpoint(name) is None:
        return cancel_deployment(name, services=services, now=now, message=GONE)
    return False


def _end(row: DeploymentRow, services: ReconcileEndpointsServices, now: float) -> bool:
    """A transform job is removed when SageMaker has stopped it, because its billed time is known then."""
    name = row.deployment.name
    if row.deployment.is_endpoint:
        return cancel_deployment(name, services=services, now=now, message=row.end_reason)
    stop_jobs(name, services)
    status = finish_deployment(name, services=services, now=now)
    if status in {DeploymentStatus.READY, DeploymentStatus.FAILED}:
        return remove_endpoint(name, services=services, now=now)
    if any(_works(job_name, services) for job_name in (check_job_name(name), name)):
        return False
    return cancel_deployment(name, services=services, now=now, message=row.end_reason)


def _works(job_name: str, services: ReconcileEndpointsServices) -> bool:
    state = services.endpoints.find_transform(job_name)
    return state is not None and not state.is_settled


def _delete_late(row: DeploymentRow, services: ReconcileEndpointsServices, now: float) -> bool:
    """Delete what was created after the deployment was removed."""
    is_due = row.removed_at is not None and row.ready_at is None and now - row.removed_at < LATE_SECONDS
    if is_due:
        delete_resources(row.deployment, services)
    return is_due
