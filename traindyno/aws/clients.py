"""One cached client per service and process; tests and the command line inject their own."""

from functools import cache
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_dynamodb.service_resource import Table
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_pricing import PricingClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sagemaker import SageMakerClient
    from mypy_boto3_service_quotas import ServiceQuotasClient
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_stepfunctions import SFNClient

    from traindyno.aws.image_addresses import ParametersClient
    from traindyno.aws.image_builds import CodeBuildClient
    from traindyno.aws.log_tail import LogsClient

CONFIG = Config(retries={"mode": "standard", "total_max_attempts": 5}, connect_timeout=5, read_timeout=25)
MORE_RETRIES = Config(retries={"mode": "standard", "total_max_attempts": 11})
RUNTIME_CONFIG = CONFIG.merge(Config(read_timeout=65))
# The Price List API has endpoints in three regions only; all return the same prices.
PRICING_REGION = "us-east-1"


@cache
def cloudformation() -> "CloudFormationClient":
    return boto3.client("cloudformation", config=CONFIG)


@cache
def codebuild() -> "CodeBuildClient":
    client: CodeBuildClient = boto3.client("codebuild", config=CONFIG)
    return client


@cache
def events() -> "EventBridgeClient":
    return boto3.client("events", config=CONFIG)


@cache
def logs() -> "LogsClient":
    client: LogsClient = boto3.client("logs", config=CONFIG)
    return client


@cache
def pricing() -> "PricingClient":
    return boto3.client("pricing", config=CONFIG, region_name=PRICING_REGION)


@cache
def s3() -> "S3Client":
    return boto3.client("s3", config=CONFIG)


@cache
def sagemaker() -> "SageMakerClient":
    return boto3.client("sagemaker", config=CONFIG)


@cache
def sagemaker_runtime() -> Any:
    return boto3.client("sagemaker-runtime", config=RUNTIME_CONFIG)


@cache
def sagemaker_with_more_retries() -> "SageMakerClient":
    """Use it to read many jobs in one call of a function: each request is tried ten times, over up to two minutes."""
    return boto3.client("sagemaker", config=CONFIG.merge(MORE_RETRIES))


@cache
def service_quotas() -> "ServiceQuotasClient":
    return boto3.client("service-quotas", config=CONFIG)


@cache
def sns() -> "SNSClient":
    return boto3.client("sns", config=CONFIG)


@cache
def ssm() -> "ParametersClient":
    client: ParametersClient = boto3.client("ssm", config=CONFIG)
    return client


@cache
def stepfunctions() -> "SFNClient":
    return boto3.client("stepfunctions", config=CONFIG)


@cache
def table(name: str) -> "Table":
    return boto3.resource("dynamodb", config=CONFIG).Table(name)


def forget() -> None:
    """The next use of each client makes it again, with the environment of that time."""
    for made in list(globals().values()):
        if hasattr(made, "cache_clear"):
            made.cache_clear()
