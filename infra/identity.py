"""The role that training jobs run under."""

from collections.abc import Iterable, Iterator, Sequence

import aws_cdk as cdk
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from infra.permissions import Grant, make_role

JOB_LOG_GROUP = "/aws/sagemaker/TrainingJobs"
# Repositories of AWS's own training containers, which live in one AWS account per region.
STOCK_REPOSITORIES = ("pytorch*", "huggingface-pytorch*", "smdistributed-modelparallel")


class Identity(Construct):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        results: s3.IBucket,
        source: s3_assets.Asset,
        data_buckets: Sequence[str],
        further: Iterable[Grant],
    ) -> None:
        super().__init__(scope, construct_id)
        self.training_role = make_role(
            self,
            "TrainingRole",
            service="sagemaker.amazonaws.com",
            trust_conditions={"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}},
            description="What a training job of this lab may do: read data and source, write results, log, pull images",
            grants=[
                *_objects(results, source),
                *self._data(data_buckets),
                *self._images(),
                *self._observation(),
                *further,
            ],
        )

    def _data(self, data_buckets: Sequence[str]) -> Iterator[Grant]:
        for name in data_buckets:
            bucket_arn = cdk.Stack.of(self).format_arn(service="s3", region="", account="", resource=name)
            yield Grant(actions=["s3:ListBucket"], resources=[bucket_arn])
            yield Grant(
                actions=["s3:GetObject"],
                resources=[f"{bucket_arn}/*"],
                wildcard_reason="The person who deployed the lab named this bucket.",
            )

    def _images(self) -> list[Grant]:
        stack = cdk.Stack.of(self)
        repositories = [stack.format_arn(service="ecr", resource="repository", resource_name="*")] + [
            stack.format_arn(service="ecr", account="*", resource="repository", resource_name=name)
            for name in STOCK_REPOSITORIES
        ]
        return [
            Grant(
                actions=["ecr:GetAuthorizationToken"],
                resources=["*"],
                wildcard_reason="This action knows no resources.",
            ),
            Grant(
                actions=["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"],
                resources=repositories,
                wildcard_reason="A suite may name an image of this account or one of AWS's training containers.",
            ),
        ]

    def _observation(self) -> list[Grant]:
        group = cdk.Stack.of(self).format_arn(
            service="logs", resource=f"log-group:{JOB_LOG_GROUP}*", arn_format=cdk.ArnFormat.NO_RESOURCE_NAME
        )
        return [
            Grant(
                actions=["logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
                resources=[group],
                wildcard_reason="SageMaker names one stream per job and host in its log group.",
            ),
            Grant(
                actions=["cloudwatch:PutMetricData"],
                resources=["*"],
                wildcard_reason="This action knows no resources; the condition limits it to SageMaker's namespace.",
                conditions={"StringEquals": {"cloudwatch:namespace": JOB_LOG_GROUP}},
            ),
        ]


def _objects(results: s3.IBucket, source: s3_assets.Asset) -> list[Grant]:
    bucket_arn = results.bucket_arn
    return [
        Grant(actions=["s3:ListBucket"], resources=[bucket_arn]),
        Grant(actions=["s3:GetObject"], resources=[source.bucket.arn_for_objects(source.s3_object_key)]),
        Grant(
            actions=["s3:GetObject"],
            resources=[f"{bucket_arn}/{prefix}/*" for prefix in ("runs", "code", "data", "prepared")],
            wildcard_reason="A job reads source, data and checkpoints under names made per suite.",
        ),
        Grant(
            actions=["s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"],
            resources=[f"{bucket_arn}/{prefix}/*" for prefix in ("runs", "prepared")],
            wildcard_reason="A job writes outputs and checkpoints under its run's prefix, named when the suite runs,"
            " and tokens under a key made of their content.",
        ),
    ]
