"""A refused request looks as AWS's own does, so that boto3 takes it for throttling and tries again."""

from collections.abc import Mapping

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from localcloud.ministack_answers import Throttle, throttling_answer
from tests.unit.localcloud.refusing import CALLS, refused_by


@pytest.mark.parametrize(("service", "call"), CALLS.items(), ids=CALLS)
def test_boto3_tries_a_throttled_request_again(service: str, call: str) -> None:
    session = boto3.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1")
    config = Config(retries={"mode": "standard", "total_max_attempts": 2})
    client = session.client(service, endpoint_url="http://127.0.0.1:1", config=config)  # type: ignore[call-overload]

    def refuse(path: str, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str], bytes]:
        answer = throttling_answer(path, headers)
        return answer.status, answer.headers, answer.body

    asked = refused_by(client, refuse)
    with pytest.raises(ClientError, match=r"Throttl|TooManyRequests|SlowDown|Rate exceeded|reduce your request rate"):
        getattr(client, call)()
    assert len(asked) == 2


def test_the_share_that_is_asked_for_is_refused() -> None:
    throttle = Throttle()
    assert throttle.refuse("/", {}) is None
    throttle.put_in_force(0.25, seed=1)
    headers: Mapping[str, str] = {"x-amz-target": "DynamoDB_20120810.Query"}
    refused = sum(throttle.refuse("/", headers) is not None for _ in range(2000))
    assert 400 < refused < 600
