"""The role that served models run under."""

from collections.abc import Iterable, Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.permissions import Grant
from infra.sagemaker_role import data_grants, image_grants, log_grant, metric_grant, sagemaker_role
from infra.serving.serving_grants import LOG_GROUPS
from infra.shared import arn
from traindyno.core.s3_keys import DATA_PREFIX, MODELS_PREFIX, TRANSFORMS_PREFIX
from traindyno.sagemaker.images import inference_repositories

NAMESPACES = "/aws/sagemaker/*"


def serving_role(
    scope: Construct, *, results: s3.IBucket, data_buckets: Sequence[str], further: Iterable[Grant]
) -> iam.Role:
    """An endpoint reads its model. A transform job also reads requests and writes answers."""
    stack = cdk.Stack.of(scope)
    repositories = [arn(stack, "ecr", f"repository/{name}", account="*") for name in inference_repositories()]
    return sagemaker_role(
        scope,
        "ServedModelRole",
        description="What a served model of this lab may do: read itself and requests, write answers, log, pull images",
        grants=[
            *_objects(results.bucket_arn),
            *data_grants(stack, data_buckets),
            *image_grants(repositories, reason="AWS's inference containers are in an account of AWS for each region."),
            log_grant(
                stack,
                LOG_GROUPS,
                reason="SageMaker names one log group per endpoint and one stream per instance.",
            ),
            metric_grant({"StringLike": {"cloudwatch:namespace": NAMESPACES}}),
            *further,
        ],
    )


def _objects(bucket_arn: str) -> list[Grant]:
    return [
        Grant(actions=["s3:ListBucket"], resources=[bucket_arn]),
        Grant(
            actions=["s3:GetObject"],
            resources=[f"{bucket_arn}/{MODELS_PREFIX}*", f"{bucket_arn}/{DATA_PREFIX}*"],
            wildcard_reason="Models and requests have names made when a model is deployed.",
        ),
        Grant(
            actions=["s3:PutObject", "s3:AbortMultipartUpload"],
            resources=[f"{bucket_arn}/{TRANSFORMS_PREFIX}*"],
            wildcard_reason="A transform job writes its answers under its own name.",
        ),
    ]
