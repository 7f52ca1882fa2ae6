"""Which AWS actions each function asks for: its handler runs here, against the local cloud, with botocore listening."""

import importlib
import json
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import _lru_cache_wrapper
from typing import Any

import boto3

from traindyno.aws import clients
from traindyno.lab import services as lab_services

# Where IAM's name of an action is not the service's name and the operation's.
PREFIXES = {"stepfunctions": "states", "service-quotas": "servicequotas", "sagemaker-runtime": "sagemaker"}
ACTIONS = {
    "s3:ListObjectsV2": ("s3:ListBucket",),
    "s3:HeadObject": ("s3:GetObject",),
    # A copy reads one object and writes another.
    "s3:CopyObject": ("s3:GetObject", "s3:PutObject"),
}

TRANSACTION = "dynamodb:TransactWriteItems"


class Recorder:
    def __init__(self) -> None:
        self.actions: dict[str, set[str]] = defaultdict(set)
        self._state: str | None = None

    def call(self, state: str, event: Mapping[str, Any]) -> Any:
        """``state`` in snake case; its handler with an event, as Lambda would call it."""
        handler = importlib.import_module(f"lambdas.{state}.handler")
        lab_services.connect.cache_clear()  # functions share no process, so none finds what another has read
        self._state = state
        try:
            return handler.handle(dict(event), PlentyOfTime())
        finally:
            self._state = None

    def listen(self, model: Any, params: Mapping[str, Any], **_: Any) -> None:
        if self._state is not None:
            service = model.service_model.service_name
            action = f"{PREFIXES.get(service, service)}:{model.name}"
            asked = _members(params) if action == TRANSACTION else ACTIONS.get(action, (action,))
            self.actions[self._state].update(asked)


def _members(params: Mapping[str, Any]) -> set[str]:
    """A transaction needs the permission of each write in it, and none of its own."""
    return {f"dynamodb:{kind}Item" for member in json.loads(params["body"])["TransactItems"] for kind in member}


class PlentyOfTime:
    def get_remaining_time_in_millis(self) -> int:
        return 900_000


@contextmanager
def recording(environment: Mapping[str, str]) -> Iterator[Recorder]:
    """boto3's default session and our cached clients are made anew, and again when it is over."""
    before = dict(os.environ)
    os.environ.update(environment)
    recorder = Recorder()
    _forget_clients()
    boto3.setup_default_session()
    assert boto3.DEFAULT_SESSION is not None
    boto3.DEFAULT_SESSION.events.register("before-call", recorder.listen)
    try:
        yield recorder
    finally:
        os.environ.clear()
        os.environ.update(before)
        boto3.DEFAULT_SESSION = None
        _forget_clients()


def _forget_clients() -> None:
    for module in (clients, lab_services):
        for value in vars(module).values():
            if isinstance(value, _lru_cache_wrapper):
                value.cache_clear()
