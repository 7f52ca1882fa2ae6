"""The AWS account of this process's clients, for as long as a block of code lasts."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import boto3

from traindyno.aws import clients


@contextmanager
def account_of(environment: Mapping[str, str]) -> Iterator[None]:
    """Inside, environment variables and clients are those of ``environment``; afterwards, what they were before.

    A program that lives longer than a command, such as a notebook, keeps its own account this way. It is not for
    several threads: a process has one environment.
    """
    before, session = dict(os.environ), boto3.DEFAULT_SESSION
    try:
        _enter(environment)
        yield
    finally:
        _enter(before)
        boto3.DEFAULT_SESSION = session


def _enter(environment: Mapping[str, str]) -> None:
    """A session and its clients keep the credentials and the endpoints that they first saw."""
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    os.environ.update(environment)
    boto3.DEFAULT_SESSION = None
    clients.forget()
