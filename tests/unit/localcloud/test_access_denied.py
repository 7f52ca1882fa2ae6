"""boto3 reads MiniStack's refusal as AWS's own: a code, and the sentence that says what to do."""

import boto3
import pytest
from botocore.exceptions import ClientError

from localcloud.ministack_answers import refusal_answer
from tests.unit.localcloud.refusing import CALLS, refused_by


@pytest.mark.parametrize(("service", "call"), CALLS.items(), ids=CALLS)
def test_boto3_shows_the_reason_of_a_refusal(service: str, call: str) -> None:
    session = boto3.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1")
    client = session.client(service, endpoint_url="http://127.0.0.1:1")  # type: ignore[call-overload]
    reason = "the key is <not> that of this local cloud"
    asked = refused_by(client, lambda path, headers: (403, *refusal_answer(path, headers, reason)))
    with pytest.raises(ClientError) as caught:
        getattr(client, call)()
    assert caught.value.response["Error"]["Code"].startswith("AccessDenied")
    assert caught.value.response["Error"]["Message"] == reason
    assert len(asked) == 1  # a refusal is not tried again
