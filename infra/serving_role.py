"""The role that served models run under."""

from collections.abc import Iterable, Iterator, Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.permissions import Grant, make_role
from infra.serving_grants import LOG_GROUPS
from traindyno.core.s3_keys import DATA_PREFIX, MODELS_PREFIX, TRANSFORMS_PREFIX

NAMESPACES = "/aws/sagemaker/*"


def serving_role(
    scope: Construct, *, results: s3.IBucket, data_buckets: Sequence[str], further: Iterable[Grant]
) -> iam.Role:
    """An endpoint reads its model. A transform job also reads requests and writes answers."""
    return make_role(
        scope,
        "ServedModelRole",
        service="sagemaker.amazonaws.com",
        trust_conditions={"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}},
        description="What a served model of this lab may do: read itself and requests, write answers, log, pull images",
        grants=[
            *_objects(results.bucket_arn),
            *_data(scope, data_buckets),
            *_images(scope),
            *_observation(scope),
            *further,
        ],
    )


def _objects(bucket_arn: str) -> list[Grant]:
    return [
        Grant(actions=["s3:ListBucket"], resources=[bucket_arn]),
        Grant(
            actions=["s3:GetObject"],
            resources=[f"{bucket_arn}/{MODELS_PREFIX}*", f"{bucket_arn}/{DATA_PREFIX}*"],
            wildcard_reason="Models and requests lie under names made when a model is deployed.",
        ),
        Grant(
            actions=["s3:PutObject", "s3:AbortMultipartUpload"],
            resources=[f"{bucket_arn}/{TRANSFORMS_PREFIX}*"],
            wildcard_reason="A transform job writes its answers under its own name.",
        ),
    ]


def _data(scope: Construct, data_buckets: Sequence[str]) -> Iterator[Grant]:
    for name in data_buckets:
        bucket_arn = cdk.Stack.of(scope).format_arn(service="s3", region="", account="", resource=name)
        yield Grant(actions=["s3:ListBucket"], resources=[bucket_arn])
        yield Grant(
            actions=["s3:GetObject"],
            resources=[f"{bucket_arn}/*"],
            wildcard_reason="The person who deployed the lab named this bucket.",
        )


def _images(scope: Construct) -> list[Grant]:
    repository = cdk.Stack.of(scope).format_arn(
        service="ecr", account="*", resource="repository", resource_name="pytorch-inference"
    )
    return [
        Grant(
            actions=["ecr:GetAuthorizationToken"],
            resources=["*"],
            wildcard_reason="This action knows no resources.",
        ),
        Grant(
            actions=["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"],
            resources=[repository],
            wildcard_reason="AWS's inference containers are in an account of AWS for each region.",
        ),
    ]


def _observation(scope: Construct) -> list[Grant]:
    groups = [
        cdk.Stack.of(scope).format_arn(
            service="logs", resource=f"log-group:{name}*", arn_format=cdk.ArnFormat.NO_RESOURCE_NAME
        )
        for name in LOG_GROUPS
    ]
    return [
        Grant(
            actions=["logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
            resources=groups,
            wildcard_reason="SageMaker names one log group per endpoint and one stream per instance.",
        ),
        Grant(
            actions=["cloudwatch:PutMetricData"],
            resources=["*"],
            wildcard_reason="This action knows no resources; the condition limits it to SageMaker's namespaces.",
            conditions={"StringLike": {"cloudwatch:namespace": NAMESPACES}},
        ),
    ]
