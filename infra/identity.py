"""The role that training jobs run under, and who may hand it to SageMaker."""

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from infra.permissions import allow

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
    ) -> None:
        super().__init__(scope, construct_id)
        self.training_role = iam.Role(
            self,
            "TrainingRole",
            assumed_by=iam.ServicePrincipal(
                "sagemaker.amazonaws.com",
                conditions={"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}},
            ),
            description="What a training job of this lab may do: read data and source, write results, log, pull images",
        )
        self._allow_objects(results)
        self._allow(["s3:GetObject"], [source.bucket.arn_for_objects(source.s3_object_key)])
        self._allow_data(data_buckets)
        self._allow_images()
        self._allow_observation()

    def _allow_objects(self, results: s3.IBucket) -> None:
        readable = [results.arn_for_objects(f"{prefix}/*") for prefix in ("suites", "code", "data")]
        written = results.arn_for_objects("suites/*")
        self._allow(["s3:ListBucket"], [results.bucket_arn])
        self._allow(["s3:GetObject"], readable, "A job reads source, data and checkpoints under names made per suite.")
        self._allow(
            ["s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"],
            [written],
            "A job writes outputs and checkpoints under its run's own prefix, which is named when the suite runs.",
        )

    def _allow_data(self, data_buckets: Sequence[str]) -> None:
        for name in data_buckets:
            bucket_arn = cdk.Stack.of(self).format_arn(service="s3", region="", account="", resource=name)
            self._allow(["s3:ListBucket"], [bucket_arn])
            self._allow(["s3:GetObject"], [f"{bucket_arn}/*"], "The person who deployed the lab named this bucket.")

    def _allow_images(self) -> None:
        stack = cdk.Stack.of(self)
        repositories = [stack.format_arn(service="ecr", resource="repository", resource_name="*")] + [
            stack.format_arn(service="ecr", account="*", resource="repository", resource_name=name)
            for name in STOCK_REPOSITORIES
        ]
        self._allow(["ecr:GetAuthorizationToken"], ["*"], "This action knows no resources.")
        self._allow(
            ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"],
            repositories,
            "A suite may name an image of this account or one of AWS's training containers.",
        )

    def _allow_observation(self) -> None:
        group = cdk.Stack.of(self).format_arn(
            service="logs", resource=f"log-group:{JOB_LOG_GROUP}*", arn_format=cdk.ArnFormat.NO_RESOURCE_NAME
        )
        self._allow(
            ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
            [group],
            "SageMaker names one stream per job and host in its log group.",
        )
        self._allow(
            ["cloudwatch:PutMetricData"],
            ["*"],
            "This action knows no resources; the condition limits it to SageMaker's namespace.",
            conditions={"StringEquals": {"cloudwatch:namespace": JOB_LOG_GROUP}},
        )

    def _allow(
        self,
        actions: Sequence[str],
        resources: Sequence[str],
        wildcard_reason: str | None = None,
        conditions: dict[str, dict[str, str]] | None = None,
    ) -> None:
        allow(self.training_role, actions, resources, wildcard_reason=wildcard_reason, conditions=conditions)
