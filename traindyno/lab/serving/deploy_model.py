"""Copy a trained model, and create its model, endpoint configuration and endpoint in SageMaker."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from traindyno.core.s3_keys import deployment_key, saved_model_key, served_model_key
from traindyno.core.serving.deployment import ModelNotServable, deployment_document, parse_deployment
from traindyno.lab.serving.services import Serving
from traindyno.sagemaker.serving import ServingSettings, build_requests


def deploy_model(
    document: Mapping[str, Any], *, serving: Serving, settings: ServingSettings, clock: Callable[[], float]
) -> None:
    """Safe to repeat. Raises DocumentInvalid, ModelNotServable or DeploymentRefused.

    What was created before a refusal has a record: the caller or a sweep removes it.
    """
    deployment = replace(parse_deployment(document, lab=settings.lab), created_at=clock())
    requests = build_requests(deployment, settings)  # refuses before anything is recorded or copied
    name, bucket = deployment.name, serving.bucket
    bucket.write_json(deployment_key(name), deployment_document(deployment))
    saved = saved_model_key(deployment.execution_id, deployment.run_id, deployment.job_name)
    if not bucket.copy_large(saved, served_model_key(name), key_arn=settings.jobs.output_key_arn):
        raise ModelNotServable(
            f"the model of {deployment.job_name} is no longer at s3://{bucket.name}/{saved}:"
            " large models expire 30 days after their training: run the suite again"
        )
    if serving.find(name) is None or (deployment.ends_at is not None and clock() >= deployment.ends_at):
        bucket.delete(served_model_key(name))
        raise ModelNotServable(f"{name} was ended while its model was copied")
    serving.endpoints.create(*requests)
