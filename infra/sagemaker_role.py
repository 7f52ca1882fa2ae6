"""The common part of the roles that SageMaker assumes."""

from collections.abc import Iterable, Iterator, Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.permissions import Conditions, Grant, arn, make_role
from traindyno.sagemaker.job_settings import LabJobs

# SageMaker calls these with a job's role in the VPC of the job.
NETWORK_ACTIONS = (
    "ec2:CreateNetworkInterface",
    "ec2:CreateNetworkInterfacePermission",
    "ec2:DeleteNetworkInterface",
    "ec2:DeleteNetworkInterfacePermission",
    "ec2:DescribeDhcpOptions",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcs",
)


def sagemaker_role(
    scope: Construct, construct_id: str, *, description: str, grants: Iterable[Grant]
) -> iam.Role:
    """Makes a role that only SageMaker can assume, and only for this account."""
    return make_role(
        scope,
        construct_id,
        service="sagemaker.amazonaws.com",
        trust_conditions={"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}},
        description=description,
        grants=[*grants],
    )


def data_grants(stack: cdk.Stack, buckets: Sequence[str]) -> list[Grant]:
    """Read access to the buckets that the context of the deployment names."""
    arns = [
        stack.format_arn(service="s3", region="", account="", resource=name) for name in buckets
    ]
    reason = "The person who deployed the lab named this bucket."
    grants = []
    for bucket_arn in arns:
        grants.append(Grant(actions=["s3:ListBucket"], resources=[bucket_arn]))
        objects = [f"{bucket_arn}/*"]
        grants.append(Grant(actions=["s3:GetObject"], resources=objects, wildcard_reason=reason))
    return grants


def image_grants(repositories: Sequence[str], *, reason: str) -> list[Grant]:
    """Permission to pull images from the repositories, which are given by their ARNs."""
    return [
        Grant(
            actions=["ecr:GetAuthorizationToken"],
            resources=["*"],
            wildcard_reason="This action does not support resource-level permissions.",
        ),
        Grant(
            actions=[
                "ecr:BatchCheckLayerAvailability",
                "ecr:BatchGetImage",
                "ecr:GetDownloadUrlForLayer",
            ],
            resources=repositories,
            wildcard_reason=reason,
        ),
    ]


def log_grant(stack: cdk.Stack, group_prefixes: Sequence[str], *, reason: str) -> Grant:
    """Permission to write to the log groups whose names begin with one of the prefixes."""
    groups = [arn(stack, "logs", f"log-group:{prefix}*") for prefix in group_prefixes]
    return Grant(
        actions=[
            "logs:CreateLogGroup",
            "logs:CreateLogStream",
            "logs:DescribeLogStreams",
            "logs:PutLogEvents",
        ],
        resources=groups,
        wildcard_reason=reason,
    )


def metric_grant(namespaces: Conditions) -> Grant:
    """Permission to write metrics, under a condition on the key ``cloudwatch:namespace``."""
    return Grant(
        actions=["cloudwatch:PutMetricData"],
        resources=["*"],
        wildcard_reason="This action does not support resource-level permissions; the condition "
        "limits it to SageMaker's namespaces.",
        conditions=namespaces,
    )


def training_grants(jobs: LabJobs, keys: tuple[str, ...]) -> Iterator[Grant]:
    """Permissions of the jobs' role besides data, source, results, logs and images.

    Args:
        jobs: The lab's settings of jobs.
        keys: The ARNs of the keys that encrypt data buckets.
    """
    if jobs.subnet_ids:
        yield Grant(
            actions=NETWORK_ACTIONS,
            resources=["*"],
            wildcard_reason="SageMaker creates network interfaces in the job's subnets; most of "
            "these actions do not support resource-level permissions.",
        )
    if jobs.hub_token_secrets:
        yield Grant(actions=["secretsmanager:GetSecretValue"], resources=jobs.hub_token_secrets)
    if keys:
        yield Grant(actions=["kms:Decrypt"], resources=keys)
    if jobs.output_key_arn:
        yield Grant(actions=["kms:Decrypt", "kms:GenerateDataKey"], resources=[jobs.output_key_arn])
    if jobs.volume_key_arn:
        yield Grant(actions=["kms:CreateGrant", "kms:DescribeKey"], resources=[jobs.volume_key_arn])
