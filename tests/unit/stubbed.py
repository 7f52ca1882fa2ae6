"""boto3 clients that talk to botocore's Stubber, which checks each request against the real service model."""

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


@contextmanager
def stubbed_table() -> Iterator[tuple[Any, Stubber]]:
    """A DynamoDB table resource: expected items are plain values, answers are in DynamoDB's own notation."""
    table = boto3.resource("dynamodb", **KEYS).Table("rows")  # type: ignore[call-overload]
    with Stubber(table.meta.client) as stubber:
        yield table, stubber
        stubber.assert_no_pending_responses()
