"""Answers the requests of a boto3 client with a refusal, for one call of each protocol that MiniStack speaks."""

import io
from collections.abc import Callable, Mapping
from typing import Any

from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders

CALLS = {
    "cloudformation": "list_stacks",
    "dynamodb": "list_tables",
    "events": "list_rules",
    "lambda": "list_functions",
    "s3": "list_buckets",
    "stepfunctions": "list_state_machines",
}
# From path and headers to status, headers and body.
Refuse = Callable[[str, Mapping[str, str]], tuple[int, Mapping[str, str], bytes]]


class RawAnswer(io.BytesIO):
    def stream(self, **_: Any) -> Any:
        yield self.getvalue()


def refused_by(client: Any, refuse: Refuse) -> list[str]:
    """The URLs that the client asks from now on; none of its requests is sent."""
    asked: list[str] = []

    def answer(request: Any, **_: Any) -> AWSResponse:
        headers = {str(name).lower(): _text(value) for name, value in request.headers.items()}
        asked.append(request.url)
        status, answered, body = refuse(request.url.partition("127.0.0.1:1")[2], headers)
        return AWSResponse(request.url, status, HTTPHeaders.from_dict(dict(answered)), RawAnswer(body))

    client.meta.events.register("before-send", answer)
    return asked


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
