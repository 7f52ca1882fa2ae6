"""Delete an endpoint or stop a transform job, with its model; what it cost stays in its row."""

from typing import Protocol

from traindyno.aws.endpoints import Endpoints
from traindyno.aws.task_answers import TaskAnswers
from traindyno.core.s3_keys import check_requests_key, served_model_key
from traindyno.core.serving.deployment import ModelDeployment, check_job_name
from traindyno.store.model_deployments import DeploymentRows
from traindyno.store.results_bucket import ResultsBucket

REMOVED = "DeploymentRemoved"


class RemoveEndpointServices(Protocol):
    """``bucket`` holds the model's copy."""

    bucket: ResultsBucket
    deployments: DeploymentRows
    endpoints: Endpoints


class CancelServices(RemoveEndpointServices, Protocol):
    answers: TaskAnswers


def cancel_deployment(name: str, *, services: CancelServices, now: float, message: str) -> bool:
    """Remove a deployment from outside of its state machine, whose task would wait for days otherwise."""
    row = services.deployments.find(name)
    removed = remove_endpoint(name, services=services, now=now, message=message)
    if removed and row is not None and row.awaits_sagemaker:
        services.answers.fail(row.token, error_name=REMOVED, cause=message)
    return removed


def remove_endpoint(name: str, *, services: RemoveEndpointServices, now: float, message: str | None = None) -> bool:
    """False if it was removed before or does not exist. Billing ends first. Safe to repeat."""
    row = services.deployments.find(name)
    if row is None or not row.is_open:
        return False
    delete_resources(row.deployment, services)
    return services.deployments.remove(name, now=now, message=message)


def delete_resources(deployment: ModelDeployment, services: RemoveEndpointServices) -> None:
    name = deployment.name
    if deployment.is_endpoint:
        services.endpoints.delete_endpoint(name)
    else:
        stop_jobs(name, services)
    services.endpoints.delete_model(name)
    for key in (served_model_key(name), check_requests_key(name)):
        services.bucket.delete(key)


def stop_jobs(name: str, services: RemoveEndpointServices) -> None:
    """Stop the transform job of a deployment and its check. A job that has ended is ignored."""
    for job_name in (check_job_name(name), name):
        services.endpoints.stop_transform(job_name)
