"""A refused request looks as AWS's own does, so that boto3 takes it for throttling and tries again."""

import io
from collections.abc import Mapping
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.config import Config
from botocore.exceptions import ClientError

from localcloud.throttling import Throttle, throttling_answer

CALLS: list[tuple[str, str, dict[str, Any]]] = [
    ("dynamodb", "list_tables", {}),
    ("stepfunctions", "list_state_machines", {}),
    ("events", "list_rules", {}),
    ("lambda", "list_functions", {}),
    ("cloudformation", "list_stacks", {}),
    ("s3", "list_buckets", {}),
]


class RawAnswer(io.BytesIO):
    def stream(self, **_: Any) -> Any:
        yield self.getvalue()


@pytest.mark.parametrize(("service", "call", "request_"), CALLS, ids=[call[0] for call in CALLS])
def test_boto3_tries_a_throttled_request_again(service: str, call: str, request_: dict[str, Any]) -> None:
    session = boto3.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1")
    config = Config(retries={"mode": "standard", "total_max_attempts": 2})
    client = session.client(service, endpoint_url="http://127.0.0.1:1", config=config)  # type: ignore[call-overload]
    asked: list[str] = []

    def refuse(request: Any, **_: Any) -> AWSResponse:
        headers = {str(name).lower(): _text(value) for name, value in request.headers.items()}
        refusal = throttling_answer(request.url.partition("127.0.0.1:1")[2], headers)
        asked.append(request.url)
        return AWSResponse(
            request.url, refusal.status, HTTPHeaders.from_dict(dict(refusal.headers)), RawAnswer(refusal.body)
        )

    client.meta.events.register("before-send", refuse)
    with pytest.raises(ClientError, match=r"Throttl|TooManyRequests|SlowDown|Rate exceeded|reduce your request rate"):
        getattr(client, call)(**request_)
    assert len(asked) == 2


def test_the_share_that_is_asked_for_is_refused() -> None:
    throttle = Throttle()
    assert throttle.refuse("/", {}) is None
    throttle.put_in_force(0.25, seed=1)
    headers: Mapping[str, str] = {"x-amz-target": "DynamoDB_20120810.Query"}
    refused = sum(throttle.refuse("/", headers) is not None for _ in range(2000))
    assert 400 < refused < 600


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
