"""Compares the calls to AWS that functions make in a local cloud with the record.

Their workers write the calls.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from infra.lambda_source import pack_lambda_source
from localcloud.worker_fork_server import CALLS_FILE_VARIABLE
from tests.permissions.calls import RECORD, read_calls, recorded_calls
from tests.permissions.unsent import UNSENT
from traindyno.aws import clients
from traindyno.core.lab_names import OPEN_ATTEMPTS_INDEX

CALLS_FILE = "calls.jsonl"
SECONDS = 300


@contextmanager
def writing_calls(folder: Path) -> Iterator[None]:
    """The functions of a MiniStack that is started in this context write their calls into
    ``folder``.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CALLS_FILE_VARIABLE, str(folder / CALLS_FILE))
        yield


def check_calls(folder: Path) -> None:
    """Checks that the record has all calls that functions sent, whichever tests have run.

    Another test checks that they are allowed.

    With ``TRAINDYNO_WRITE_CALLS``, the missing calls are added to the record.
    """
    sent = read_calls(folder / CALLS_FILE)
    lacking = sorted(map(str, sent - recorded_calls() - UNSENT.keys()))
    if "TRAINDYNO_WRITE_CALLS" in os.environ:
        RECORD.write_text(
            "".join(f"{line}\n" for line in sorted({*map(str, recorded_calls()), *lacking}))
        )
    else:
        assert not lacking, (
            f"{RECORD} lacks calls: run these tests with TRAINDYNO_WRITE_CALLS=1, and read "
            f"what it adds: {lacking}"
        )


class Lambdas:
    """Every handler as a function of another lab in MiniStack: deployed functions leave that lab's
    jobs alone.
    """

    def __init__(self, **variables: str) -> None:
        """Every function gets ``variables``."""
        self._variables = variables
        self._code = pack_lambda_source(with_boto3=False)
        self._made: set[str] = set()

    @cached_property
    def _client(self) -> Any:
        return boto3.client(
            "lambda", config=Config(read_timeout=SECONDS, retries={"total_max_attempts": 1})
        )

    def call(self, state: str, event: Mapping[str, Any]) -> Any:
        """Calls the function of a state, which is named in snake case."""
        name = f"{self._variables['LAB']}-{state}"
        if name not in self._made:
            self._make(name, state)
        answer = self._client.invoke(FunctionName=name, Payload=json.dumps(event).encode())
        said = json.loads(answer["Payload"].read())
        assert "FunctionError" not in answer, said
        return said

    def _make(self, name: str, state: str) -> None:
        self._client.create_function(
            FunctionName=name,
            Runtime="python3.14",
            Handler=f"lambdas.{state}.handler.handle",
            Role="arn:aws:iam::000000000000:role/any",
            Code={"ZipFile": self._code},
            Environment={"Variables": self._variables},
            Timeout=SECONDS,
        )
        self._made.add(name)


def make_table(name: str) -> None:
    """Makes a table like the stack's, with its index."""
    names = ("pk", "sk", "open", "execution_id")
    boto3.client("dynamodb").create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in names],
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": OPEN_ATTEMPTS_INDEX,
                "KeySchema": [
                    {"AttributeName": "open", "KeyType": "HASH"},
                    {"AttributeName": "execution_id", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )


@contextmanager
def as_if_in(environment: Mapping[str, str]) -> Iterator[None]:
    """boto3's default session and our cached clients use this environment until the context ends;
    then they are made anew.
    """
    _forget_clients()
    boto3.DEFAULT_SESSION = None
    try:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            yield
    finally:
        boto3.DEFAULT_SESSION = None
        _forget_clients()


def _forget_clients() -> None:
    for value in vars(clients).values():
        if hasattr(value, "cache_clear"):
            value.cache_clear()
