"""Refuses a share of the requests to MiniStack for tests, with each API's own error for throttling."""

import random
from collections.abc import Mapping
from dataclasses import dataclass

LAMBDA_PATH = "/2015-03-31/"
S3_ERROR = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
QUERY_ERROR = (
    b"<ErrorResponse><Error><Type>Sender</Type><Code>Throttling</Code><Message>Rate exceeded</Message></Error>"
    b"<RequestId>throttled</RequestId></ErrorResponse>"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottlingAnswer:
    status: int
    headers: Mapping[str, str]
    body: bytes


class Throttle:
    """Refuses a fraction of the requests; the seed decides which."""

    def __init__(self) -> None:
        self._fraction = 0.0
        self._dice = random.Random()

    def put_in_force(self, fraction: float, seed: int) -> None:
        self._fraction = fraction
        self._dice.seed(seed)

    def refuse(self, path: str, headers: Mapping[str, str]) -> ThrottlingAnswer | None:
        return throttling_answer(path, headers) if self._dice.random() < self._fraction else None


def throttling_answer(path: str, headers: Mapping[str, str]) -> ThrottlingAnswer:
    """AWS's answer to a throttled request; it depends on the protocol of the service."""
    if "x-amz-target" in headers:
        return _json("ThrottlingException", 400)
    if path.startswith(LAMBDA_PATH):
        return _json("TooManyRequestsException", 429)
    if headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        return ThrottlingAnswer(status=400, headers={"content-type": "text/xml"}, body=QUERY_ERROR)
    return ThrottlingAnswer(status=503, headers={"content-type": "application/xml"}, body=S3_ERROR)


def _json(code: str, status: int) -> ThrottlingAnswer:
    body = f'{{"__type": "{code}", "message": "Rate exceeded"}}'.encode()
    headers = {"content-type": "application/x-amz-json-1.1", "x-amzn-errortype": code}
    return ThrottlingAnswer(status=status, headers=headers, body=body)
