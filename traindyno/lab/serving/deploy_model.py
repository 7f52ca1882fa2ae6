"""Copy a trained model, and create its model, endpoint configuration and endpoint in SageMaker."""

from collections.abc import Callable, Mapping
from typing import Any

from traindyno.core.s3_keys import saved_model_key, served_model_key
from traindyno.core.serving.deployment import ModelNotServable, parse_deployment
from traindyno.lab.serving.services import Serving
from traindyno.sagemaker.serving import ServingSettings, build_requests
from traindyno.store.deployments import DeploymentRow


def deploy_model(
    document: Mapping[str, Any], *, serving: Serving, settings: ServingSettings, clock: Callable[[], float]
) -> DeploymentRow:
    """Safe to repeat. Raises DocumentInvalid, ModelNotServable or DeploymentRefused.

    What is refused has a row, which the caller removes; else the sweep does.
    """
    deployment = parse_deployment(document, lab=settings.lab)
    now = clock()
    requests = build_requests(deployment, now, settings)  # refuses before anything is recorded or copied
    row = serving.deployments.create(DeploymentRow(deployment=deployment, created_at=now))
    if row.created_at != now:
        requests = build_requests(row.deployment, row.created_at, settings)
    saved = saved_model_key(deployment.execution_id, deployment.run_id, deployment.job_name)
    copy = served_model_key(deployment.name)
    if not serving.bucket.copy_large(saved, copy, key_arn=settings.jobs.output_key_arn):
        raise ModelNotServable(
            f"the model of {deployment.job_name} is no longer at s3://{serving.bucket.name}/{saved}:"
            " large models expire 30 days after their training: run the suite again"
        )
    found = serving.deployments.find(deployment.name)
    if found is None or not found.is_open or (row.ends_at is not None and clock() >= row.ends_at):
        raise ModelNotServable(f"{deployment.name} was ended while its model was copied: {_why(found, row)}")
    serving.endpoints.create(requests.model, requests.config, requests.endpoint)
    return row


def _why(found: DeploymentRow | None, row: DeploymentRow) -> str:
    return (found and found.message) or row.deployment.end_reason(row.created_at)
