"""boto3 clients that talk to botocore's Stubber, which checks each request against the real service
model.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
from botocore.stub import Stubber

KEYS = {"region_name": "us-east-1", "aws_access_key_id": "x", "aws_secret_access_key": "x"}


@contextmanager
def stubbed(service: str) -> Iterator[tuple[Any, Stubber]]:
    """Fails if a response that was laid out has not been asked for."""
    client = boto3.client(service, **KEYS)  # type: ignore[call-overload]
    with Stubber(client) as stubber:
        yield client, stubber
        stubber.assert_no_pending_responses()


def sent_requests(client: Any, operation: str) -> list[dict[str, Any]]:
    """The list to which each later call of ``operation``, such as CreateModel, adds its
    parameters.
    """
    sent: list[dict[str, Any]] = []
    service = client.meta.service_model.service_id.hyphenize()
    client.meta.events.register(
        f"before-parameter-build.{service}.{operation}",
        lambda params, **_: sent.append(dict(params)),
    )
    return sent


@contextmanager
def stubbed_table() -> Iterator[tuple[Any, Stubber]]:
    """A DynamoDB table resource: expected items are plain values, answers are in DynamoDB's own
    notation.
    """
    table = boto3.resource("dynamodb", **KEYS).Table("rows")  # type: ignore[call-overload]
    with Stubber(table.meta.client) as stubber:
        yield table, stubber
        stubber.assert_no_pending_responses()
