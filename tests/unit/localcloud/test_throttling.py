"""MiniStack's refusals look as AWS's own do: boto3 tries a throttled request again, and shows a
stranger the reason.
"""

import io
from collections.abc import Callable, Mapping
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.config import Config
from botocore.exceptions import ClientError

from localcloud.ministack_answers import DENIED, THROTTLED, HttpAnswer, Throttle, error_answer

# One call of each protocol that MiniStack speaks
CALLS = {
    "cloudformation": "list_stacks",
    "dynamodb": "list_tables",
    "events": "list_rules",
    "lambda": "list_functions",
    "s3": "list_buckets",
    "stepfunctions": "list_state_machines",
}
# From path and headers
Refuse = Callable[[str, Mapping[str, str]], HttpAnswer]


class RawAnswer(io.BytesIO):
    def stream(self, **_: Any) -> Any:
        yield self.getvalue()


def refused_by(client: Any, refuse: Refuse) -> list[str]:
    """The URLs that the client asks from now on; none of its requests is sent."""
    asked: list[str] = []

    def answer(request: Any, **_: Any) -> AWSResponse:
        headers = {str(name).lower(): _text(value) for name, value in request.headers.items()}
        asked.append(request.url)
        answered = refuse(request.url.partition("127.0.0.1:1")[2], headers)
        return AWSResponse(
            request.url,
            answered.status,
            HTTPHeaders.from_dict(dict(answered.headers)),
            RawAnswer(answered.body),
        )

    client.meta.events.register("before-send", answer)
    return asked


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value


def client_of(service: str) -> Any:
    session = boto3.Session(
        aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1"
    )
    config = Config(retries={"mode": "standard", "total_max_attempts": 2})
    return session.client(service, endpoint_url="http://127.0.0.1:1", config=config)  # type: ignore[call-overload]


@pytest.mark.parametrize(("service", "call"), CALLS.items(), ids=CALLS)
def test_boto3_tries_a_throttled_request_again(service: str, call: str) -> None:
    client = client_of(service)
    asked = refused_by(
        client, lambda path, headers: error_answer(path, headers, THROTTLED, "Rate exceeded")
    )
    with pytest.raises(
        ClientError,
        match=r"Throttl|TooManyRequests|SlowDown|Rate exceeded|reduce your request rate",
    ):
        getattr(client, call)()
    assert len(asked) == 2


def test_the_requested_share_is_refused() -> None:
    throttle = Throttle()
    assert throttle.refuse("/", {}) is None
    throttle.put_in_force(0.25, seed=1)
    headers: Mapping[str, str] = {"x-amz-target": "DynamoDB_20120810.Query"}
    refused = sum(throttle.refuse("/", headers) is not None for _ in range(2000))
    assert 400 < refused < 600


@pytest.mark.parametrize(("service", "call"), CALLS.items(), ids=CALLS)
def test_boto3_shows_the_reason_of_a_refusal(service: str, call: str) -> None:
    client = client_of(service)
    reason = "the key is <not> that of this local cloud"
    asked = refused_by(client, lambda path, headers: error_answer(path, headers, DENIED, reason))
    with pytest.raises(ClientError) as caught:
        getattr(client, call)()
    assert caught.value.response["Error"]["Code"].startswith("AccessDenied")
    assert caught.value.response["Error"]["Message"] == reason
    assert len(asked) == 1  # a refusal is not tried again
