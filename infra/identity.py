"""The role that training jobs run under."""

from collections.abc import Iterable, Sequence

import aws_cdk as cdk
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.permissions import Grant, arn
from infra.sagemaker_role import data_grants, image_grants, log_grant, metric_grant, sagemaker_role

JOB_LOG_GROUP = "/aws/sagemaker/TrainingJobs"
# Repositories of AWS's own training containers, which are in one AWS account per region.
STOCK_REPOSITORIES = ("pytorch*", "huggingface-pytorch*", "smdistributed-modelparallel")


class Identity(Construct):
    """The role of training jobs, with ``further`` grants beside data, images and logs."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        results: s3.IBucket,
        data_buckets: Sequence[str],
        further: Iterable[Grant],
    ) -> None:
        super().__init__(scope, construct_id)
        stack = cdk.Stack.of(self)
        account_repositories = arn(stack, "ecr", "repository/*")
        stock = [
            arn(stack, "ecr", f"repository/{name}", account="*") for name in STOCK_REPOSITORIES
        ]
        self.training_role = sagemaker_role(
            self,
            "TrainingRole",
            description="What a training job of this lab may do: read data and source, write "
            "results, log, pull images",
            grants=[
                *_objects(results),
                *data_grants(stack, data_buckets),
                *image_grants(
                    [account_repositories, *stock],
                    reason="A suite may name an image of this account or one of AWS's training "
                    "containers.",
                ),
                log_grant(
                    stack,
                    [JOB_LOG_GROUP],
                    reason="SageMaker names one stream per job and host in its log group.",
                ),
                metric_grant({"StringEquals": {"cloudwatch:namespace": JOB_LOG_GROUP}}),
                *further,
            ],
        )


def _objects(results: s3.IBucket) -> list[Grant]:
    bucket_arn = results.bucket_arn
    return [
        Grant(actions=["s3:ListBucket"], resources=[bucket_arn]),
        Grant(
            actions=["s3:GetObject"],
            resources=[
                f"{bucket_arn}/{prefix}/*" for prefix in ("runs", "code", "data", "prepared")
            ],
            wildcard_reason="A job reads data, checkpoints and its suite's copy of the source, "
            "named per suite.",
        ),
        Grant(
            actions=["s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"],
            resources=[f"{bucket_arn}/{prefix}/*" for prefix in ("runs", "trained", "prepared")],
            wildcard_reason="A job writes outputs and checkpoints under its run's prefix, named "
            "when the suite runs, and tokens under a key made of their content.",
        ),
    ]
