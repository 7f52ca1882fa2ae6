"""An endpoint or transform job has changed: record that it is ready or has failed, and answer the task that waits."""

from typing import Protocol

from traindyno.aws.endpoints import Endpoints
from traindyno.aws.log_tail import LogTail
from traindyno.aws.task_answers import TaskAnswers
from traindyno.core.serving.deployment import check_job_name, deployment_of
from traindyno.sagemaker.serving.serving_description import ENDPOINT_LOG_GROUP, TRANSFORM_LOG_GROUP, ServingState
from traindyno.store.model_deployments import MESSAGE_LENGTH, DeploymentRow, DeploymentRows, DeploymentStatus

# After this time, a resource that SageMaker does not know was never created: DeployModel ended before.
NEVER_CREATED_SECONDS = 900
LAST_LINES = 12
FAILURE = "DeploymentFailed"


class FinishDeploymentServices(Protocol):
    deployments: DeploymentRows
    endpoints: Endpoints
    log_tail: LogTail
    answers: TaskAnswers


def finish_deployment(job_name: str, *, services: FinishDeploymentServices, now: float) -> DeploymentStatus | None:
    """The status that it has now; None if nothing is settled yet. Safe for events that are repeated, late or lost.

    ``job_name`` is the name of an endpoint or of a transform job, or the deployment's own.
    """
    row = services.deployments.find(deployment_of(job_name))
    if row is None or not row.awaits_sagemaker:
        return None
    if row.status is DeploymentStatus.CREATING:
        state = _describe(row, services, now)
        if state is None or not state.is_settled:
            return None
        if row.is_checked_by_job and state.is_ready:
            services.answers.succeed(row.token, {"name": row.deployment.name})
            return row.status
        row = _settle(row, state, services, now)
    _answer(row, services)
    return row.status


def _describe(row: DeploymentRow, services: FinishDeploymentServices, now: float) -> ServingState | None:
    """The state of the endpoint or transform job that its task waits for."""
    name, endpoints = _awaited(row), services.endpoints
    state = endpoints.find_endpoint(name) if row.deployment.is_endpoint else endpoints.find_transform(name)
    if state is None and now - row.step_began_at > NEVER_CREATED_SECONDS:
        return ServingState(is_ready=False, failure=f"the {row.deployment.hosting} {name} does not exist in SageMaker")
    return state


def _awaited(row: DeploymentRow) -> str:
    name = row.deployment.name
    return check_job_name(name) if row.is_checked_by_job else name


def _settle(row: DeploymentRow, state: ServingState, services: FinishDeploymentServices, now: float) -> DeploymentRow:
    name = row.deployment.name
    services.deployments.settle(
        name,
        DeploymentStatus.READY if state.is_ready else DeploymentStatus.FAILED,
        now=now,
        message=_explained(row, _cause(row, state.failure, now), services) if state.failure else None,
        billed_seconds=_billed_seconds(row, state, services),
    )
    return services.deployments.find(name) or row


def _billed_seconds(row: DeploymentRow, state: ServingState, services: FinishDeploymentServices) -> float | None:
    """Billed seconds of all instances of the transform job and of its check; None for an endpoint, and if unknown."""
    if state.seconds is None or row.is_checked_by_job:
        return state.seconds
    check = services.endpoints.find_transform(check_job_name(row.deployment.name))
    if check is None or check.seconds is None:
        return None
    return state.seconds * row.deployment.instance_count + check.seconds


def _cause(row: DeploymentRow, failure: str, now: float) -> str:
    """The lab stops a transform job whose time or amount is used up; SageMaker says only that it was stopped."""
    return f"{failure}: {row.end_reason}" if row.is_expired(now) else failure


def _explained(row: DeploymentRow, failure: str, services: FinishDeploymentServices) -> str:
    """The failure with the container's last lines, which contain the cause that SageMaker's message omits."""
    name = _awaited(row)
    lines = (
        services.log_tail.read_group(f"{ENDPOINT_LOG_GROUP}/{name}")
        if row.deployment.is_endpoint
        else services.log_tail.read_group(TRANSFORM_LOG_GROUP, f"{name}/")
    )
    if not lines or lines[-1] in failure:
        return failure[:MESSAGE_LENGTH]
    return "\n".join([failure, *lines[-LAST_LINES:]])[:MESSAGE_LENGTH]


def _answer(row: DeploymentRow, services: FinishDeploymentServices) -> None:
    """Answer the task; a second answer has no effect."""
    match row.status:
        case DeploymentStatus.READY:
            services.answers.succeed(row.token, {"name": row.deployment.name})
        case DeploymentStatus.FAILED:
            services.answers.fail(row.token, error_name=FAILURE, cause=row.message or "")
