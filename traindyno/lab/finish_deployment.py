"""An endpoint or transform job has changed: record that it is ready or has failed, and answer the task that waits."""

from traindyno.lab.services import LabServices
from traindyno.sagemaker.serving_description import ENDPOINT_LOG_GROUP, TRANSFORM_LOG_GROUP, ServingState
from traindyno.store.model_deployments import DeploymentRow, DeploymentStatus

# After this, what SageMaker does not know was never created: DeployModel was cut off before it could.
NEVER_CREATED_SECONDS = 900
LAST_LINES = 12
CAUSE_LENGTH = 4000
FAILURE = "DeploymentFailed"


def finish_deployment(name: str, *, services: LabServices, now: float) -> DeploymentStatus | None:
    """The status that it has now; None if nothing is settled yet. Safe for events that are repeated, late or lost."""
    row = services.deployments.find(name)
    if row is None or not row.is_open or row.checked_samples is not None:
        return None
    if row.status is DeploymentStatus.CREATING:
        settled = _settle(row, services, now)
        if settled is None:
            return None
        row = settled
    _answer(row, services)
    return row.status


def _settle(row: DeploymentRow, services: LabServices, now: float) -> DeploymentRow | None:
    name = row.deployment.name
    endpoints = services.endpoints
    state = endpoints.find_endpoint(name) if row.deployment.is_endpoint else endpoints.find_transform(name)
    if state is None and now - row.created_at > NEVER_CREATED_SECONDS:
        state = ServingState(is_ready=False, failure=f"SageMaker knows no {row.deployment.hosting} {name}")
    if state is None or not state.is_settled:
        return None
    services.deployments.settle(
        name,
        DeploymentStatus.READY if state.is_ready else DeploymentStatus.FAILED,
        now=now,
        message=_explained(row, state.failure, services) if state.failure else None,
        billed_seconds=state.seconds,
    )
    return services.deployments.find(name)


def _explained(row: DeploymentRow, failure: str, services: LabServices) -> str:
    """With the container's last lines, which say what SageMaker's own sentence leaves out."""
    name = row.deployment.name
    lines = (
        services.log_tail.read_group(f"{ENDPOINT_LOG_GROUP}/{name}")
        if row.deployment.is_endpoint
        else services.log_tail.read_group(TRANSFORM_LOG_GROUP, f"{name}/")
    )
    if not lines or lines[-1] in failure:
        return failure[:CAUSE_LENGTH]
    return "\n".join([failure, *lines[-LAST_LINES:]])[:CAUSE_LENGTH]


def _answer(row: DeploymentRow, services: LabServices) -> None:
    """A task that has its answer already takes no second one."""
    match row.status:
        case DeploymentStatus.READY:
            services.answers.succeed(row.token, {"name": row.deployment.name})
        case DeploymentStatus.FAILED:
            services.answers.fail(row.token, error_name=FAILURE, cause=row.message or "")
