"""Serving of models: the role of endpoints, and the permissions to end them."""

from dataclasses import replace

import aws_cdk as cdk
from constructs import Construct

from infra.lab_function import FunctionSetup
from infra.lab_grants import LabGrants, without_resources
from infra.permissions import Grant, arn
from infra.sagemaker_role import (
    image_grants,
    log_grant,
    metric_grant,
    sagemaker_role,
    training_grants,
)
from traindyno.core.lab_names import LAB_TAG, LabOutput
from traindyno.core.s3_keys import MODELS_PREFIX
from traindyno.core.serving.deployment import IMAGE_REPOSITORY
from traindyno.sagemaker.job_settings import LabJobs, write_lab_jobs
from traindyno.sagemaker.serving import ENDPOINT_LOG_GROUP

PER_DEPLOYMENT = (
    "Deployments are named when models are deployed; the lab's name in front keeps other labs' out."
)


class ServedModelRole(Construct):
    """The role under which endpoints run.

    The command line makes endpoints, with the permissions of its user.
    """

    def __init__(
        self, scope: Construct, construct_id: str, setup: FunctionSetup, *, jobs: LabJobs
    ) -> None:
        super().__init__(scope, construct_id)
        stack = cdk.Stack.of(self)
        grants = LabGrants(self, setup)
        role = sagemaker_role(
            self,
            "ServedModelRole",
            description="What a served model of this lab may do: read itself, log, pull its image",
            grants=[
                on_copies(grants, "s3:GetObject"),
                *image_grants(
                    [arn(stack, "ecr", f"repository/{IMAGE_REPOSITORY}", account="*")],
                    reason="AWS's inference containers are in an account of AWS for each region.",
                ),
                log_grant(
                    stack,
                    [f"{ENDPOINT_LOG_GROUP}/"],
                    reason="SageMaker names a log group per endpoint.",
                ),
                metric_grant({"StringLike": {"cloudwatch:namespace": "/aws/sagemaker/*"}}),
                # Secrets are for training jobs only.
                *training_grants(replace(jobs, hub_token_secrets=()), ()),
            ],
        )
        cdk.CfnOutput(stack, LabOutput.SERVING_ROLE_ARN.value, value=role.role_arn)
        cdk.CfnOutput(stack, LabOutput.LAB_JOBS.value, value=write_lab_jobs(jobs))


def ending_endpoints(grants: LabGrants) -> list[Grant]:
    """Permissions of ReconcileRuns and GuardLab to end endpoints.

    Configurations and models are deleted without a look at their tags: where one is missing
    already, SageMaker would answer a request under such a condition with AccessDenied instead of
    its name.
    """
    ours = {"StringEquals": {f"aws:ResourceTag/{LAB_TAG}": grants.lab}}
    return [
        without_resources("sagemaker:ListEndpoints"),
        grants.on("endpoint", "DescribeEndpoint", "ListTags", reason=PER_DEPLOYMENT),
        grants.on("endpoint", "DeleteEndpoint", reason=PER_DEPLOYMENT, conditions=ours),
        grants.on("endpoint-config", "DeleteEndpointConfig", reason=PER_DEPLOYMENT),
        grants.on("model", "DeleteModel", reason=PER_DEPLOYMENT),
        on_copies(grants, "s3:GetObject", "s3:DeleteObject"),
    ]


def on_copies(grants: LabGrants, *actions: str) -> Grant:
    """Permission of S3's actions on the copies of served models."""
    copies = f"{grants.bucket_arn}/{MODELS_PREFIX}*"
    return Grant(actions=actions, resources=[copies], wildcard_reason=PER_DEPLOYMENT)
