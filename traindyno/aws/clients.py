"""One cached client per service and process; tests and the command line inject their own."""

from functools import cache
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

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

CONFIG = Config(
    retries={"mode": "standard", "total_max_attempts": 5}, connect_timeout=5, read_timeout=25
)
MORE_RETRIES = Config(retries={"mode": "standard", "total_max_attempts": 11})
RUNTIME_CONFIG = CONFIG.merge(Config(read_timeout=65))
# The Price List API has endpoints in three regions only; all return the same prices.
PRICING_REGION = "us-east-1"


def _client(service: str, **options: Any) -> Any:
    return cache(lambda: boto3.client(service, **{"config": CONFIG, **options}))  # type: ignore[call-overload]


cloudformation: "_lru_cache_wrapper[CloudFormationClient]" = _client("cloudformation")
codebuild: "_lru_cache_wrapper[CodeBuildClient]" = _client("codebuild")
events: "_lru_cache_wrapper[EventBridgeClient]" = _client("events")
logs: "_lru_cache_wrapper[LogsClient]" = _client("logs")
pricing: "_lru_cache_wrapper[PricingClient]" = _client("pricing", region_name=PRICING_REGION)
s3: "_lru_cache_wrapper[S3Client]" = _client("s3")
sagemaker: "_lru_cache_wrapper[SageMakerClient]" = _client("sagemaker")
sagemaker_runtime: "_lru_cache_wrapper[Any]" = _client("sagemaker-runtime", config=RUNTIME_CONFIG)
# To read many jobs in one call of a function: each request is tried ten times, over up to two
# minutes.
sagemaker_with_more_retries: "_lru_cache_wrapper[SageMakerClient]" = _client(
    "sagemaker", config=CONFIG.merge(MORE_RETRIES)
)
service_quotas: "_lru_cache_wrapper[ServiceQuotasClient]" = _client("service-quotas")
sns: "_lru_cache_wrapper[SNSClient]" = _client("sns")
ssm: "_lru_cache_wrapper[ParametersClient]" = _client("ssm")
stepfunctions: "_lru_cache_wrapper[SFNClient]" = _client("stepfunctions")


@cache
def table(name: str) -> "Table":
    return boto3.resource("dynamodb", config=CONFIG).Table(name)


def forget() -> None:
    """The next use of each client makes it again, with the environment of that time."""
    for made in list(globals().values()):
        if hasattr(made, "cache_clear"):
            made.cache_clear()
