"""Creates the clients of the local AWS services, without profile or endpoint of the user."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

from localcloud.sagemaker_service.events.event_delivery import FunctionClient
from localcloud.sagemaker_service.storage.log_shipping import LogClient

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_s3 import S3Client

SETTINGS = Config(
    connect_timeout=5,
    read_timeout=60,
    retries={"mode": "standard", "total_max_attempts": 3},
    max_pool_connections=32,
    s3={"addressing_style": "path"},
    request_checksum_calculation="when_required",
    response_checksum_validation="when_required",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsClients:
    s3: "S3Client"
    logs: LogClient
    events: "EventBridgeClient"
    functions: FunctionClient


def local_aws_clients(endpoint: str, region: str, access_key_id: str) -> AwsClients:
    session = boto3.Session(aws_access_key_id=access_key_id, aws_secret_access_key="test", region_name=region)
    return AwsClients(
        s3=session.client("s3", endpoint_url=endpoint, config=SETTINGS),
        logs=session.client("logs", endpoint_url=endpoint, config=SETTINGS),
        events=session.client("events", endpoint_url=endpoint, config=SETTINGS),
        functions=session.client("lambda", endpoint_url=endpoint, config=SETTINGS),
    )
