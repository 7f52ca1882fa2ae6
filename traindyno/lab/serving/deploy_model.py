"""Create a deployment's model, and its endpoint or transform job; the task waits until that is ready or has failed.

A transform job takes two calls: the first one starts a job over the training job's evaluation samples.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from traindyno.aws.client_errors import AwsError, temporary
from traindyno.aws.endpoints import DeploymentRefused, Endpoints
from traindyno.aws.task_answers import TaskAnswers
from traindyno.core.errors import DocumentInvalid, NextAttempt
from traindyno.core.s3_keys import check_requests_key, samples_key, saved_model_key, served_model_key
from traindyno.core.serving.deployment import ModelDeployment, ModelNotServable
from traindyno.core.serving.deployment_document import parse_deployment
from traindyno.core.serving.samples import LINES_CONTENT_TYPE, parse_samples, request_of
from traindyno.sagemaker.images import ImageUnavailable
from traindyno.sagemaker.serving.serving_request import (
    ServingSettings,
    build_check_request,
    build_endpoint_config_request,
    build_endpoint_request,
    build_model_request,
    build_transform_request,
)
from traindyno.store.model_deployments import MESSAGE_LENGTH, DeploymentRow, DeploymentRows, DeploymentStatus
from traindyno.store.results_bucket import ResultsBucket


class DeployModelServices(Protocol):
    """``bucket`` holds the model and its samples. ``answers`` the task only if the deployment fails here."""

    bucket: ResultsBucket
    deployments: DeploymentRows
    endpoints: Endpoints
    answers: TaskAnswers


def deploy_model(
    document: Mapping[str, Any], token: str, *, services: DeployModelServices, settings: ServingSettings, now: float
) -> str | None:
    """The name of the error with which the task was answered; None if it waits. Safe to repeat."""
    try:
        deployment = parse_deployment(document, lab=settings.lab)
    except DocumentInvalid as error:
        return _fail(token, error, services)
    row = DeploymentRow(deployment=deployment, status=DeploymentStatus.CREATING, created_at=now, token=token)
    if not services.deployments.create(row):
        row = services.deployments.find(deployment.name) or row
    try:
        _refuse_ended(row, now)
        _create(row, services, settings)
    except NextAttempt as error:
        return _fail(token, error, services)
    except (ModelNotServable, DeploymentRefused, ImageUnavailable) as error:
        services.deployments.settle(
            deployment.name, DeploymentStatus.FAILED, now=now, message=str(error)[:MESSAGE_LENGTH], billed_seconds=None
        )
        return _fail(token, error, services)
    except AwsError as error:
        return _fail(token, temporary(error, deployment.name) or DeploymentRefused(str(error)), services)
    return None


def _refuse_ended(row: DeploymentRow, now: float) -> None:
    """Raises DeploymentRefused if nothing may be created any more."""
    if not row.is_open:
        raise DeploymentRefused(f"{row.deployment.name} is removed: {row.message or 'the lab gave no reason'}")
    if row.is_expired(now):
        raise DeploymentRefused(f"{row.deployment.name}: {row.end_reason}")


def _create(row: DeploymentRow, services: DeployModelServices, settings: ServingSettings) -> None:
    deployment = row.deployment
    if deployment.is_endpoint:
        _create_model(deployment, services, settings)
        services.endpoints.create_endpoint(
            build_endpoint_config_request(deployment, settings), build_endpoint_request(deployment, settings)
        )
    elif row.is_checked_by_job:
        _create_model(deployment, services, settings)
        _write_samples(deployment, services)
        services.endpoints.create_transform(build_check_request(deployment, settings))
    else:
        services.endpoints.create_transform(build_transform_request(deployment, settings))


def _create_model(deployment: ModelDeployment, services: DeployModelServices, settings: ServingSettings) -> None:
    request = build_model_request(deployment, settings)  # refuses before anything is copied
    saved = saved_model_key(deployment.execution_id, deployment.run_id, deployment.job_name)
    if not services.bucket.copy_large(saved, served_model_key(deployment.name)):
        raise ModelNotServable(
            f"the model of {deployment.job_name} is no longer at s3://{services.bucket.name}/{saved}:"
            " large models expire 30 days after their training: run the suite again"
        )
    services.endpoints.create_model(request)


def _write_samples(deployment: ModelDeployment, services: DeployModelServices) -> None:
    key = samples_key(deployment.execution_id, deployment.run_id, deployment.job_name)
    samples = services.bucket.read_as(key, parse_samples).samples
    lines = "".join(f"{request_of(sample)}\n" for sample in samples)
    services.bucket.write(check_requests_key(deployment.name), lines.encode(), LINES_CONTENT_TYPE)


def _fail(token: str, error: Exception, services: DeployModelServices) -> str:
    """A raised error, which also fails the task, would count as a failure of the function."""
    services.answers.fail(token, error_name=type(error).__name__, cause=str(error))
    return type(error).__name__
