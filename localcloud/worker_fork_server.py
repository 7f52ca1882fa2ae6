"""Forks the worker processes of the functions of one archive; a program for MiniStack's
environment.

It has imported boto3 and what the archive's handlers import, and has read the service models: these
imports take most of the time of a start. ``worker_processes.py`` starts this program and sends it
requests. A request is one message: JSON with the worker's program, folder and environment, and the
worker's three standard files as descriptors. The answer is the process ID, with a descriptor of the
process.

If TRAINDYNO_CALLS_FILE names a file, each call to AWS that a worker makes is written to it, for the
tests of the functions' permissions.
"""

import array
import contextlib
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import boto3
import botocore.handlers  # noqa: F401  every worker imports it

# AWS's own Python (3.14) reads JSON of any depth that its stack holds; 1,000 levels otherwise.
DEEPEST_CALLS = 20_000
LARGEST_REQUEST = 100_000
LARGEST_ANSWER = 20
STANDARD_FILES = 3
CALLS_FILE_VARIABLE = "TRAINDYNO_CALLS_FILE"
# Variables with these endings name the resources of a function.
RESOURCE_VARIABLE_ENDINGS = ("LAB", "BUCKET", "TABLE", "_ARN", "_S3_URI")
LONGEST_NAME = 1_000
SERVICES = ("dynamodb", "logs", "pricing", "s3", "sagemaker", "service-quotas", "stepfunctions")
# The clients need credentials to be created; no request is sent with them.
FAKE_CREDENTIALS = {
    "region_name": "us-east-1",
    "aws_access_key_id": "nobody",
    "aws_secret_access_key": "nothing",
}


def main() -> None:
    connection = socket.socket(fileno=int(sys.argv[1]))
    read_models()
    if CALLS_FILE_VARIABLE in os.environ:
        record_calls(os.environ[CALLS_FILE_VARIABLE])
    import_code(Path(sys.argv[2]))
    gc.freeze()  # The collector leaves these objects alone, so that the workers share their memory.
    while True:
        message, files, _, _ = socket.recv_fds(
            connection, LARGEST_REQUEST, STANDARD_FILES, socket.MSG_CMSG_CLOEXEC
        )
        if not message:
            return
        reap()
        process_id = os.fork()
        if not process_id:
            connection.close()
            become_worker(json.loads(message), files)
            return
        for file in files:
            os.close(file)
        answer(connection, process_id)


def import_code(code: Path) -> None:
    """A worker imports its handler itself, which then finds the other modules."""
    sys.path.insert(0, str(code))
    for handler in sorted(code.glob("lambdas/*/handler.py")):
        name = f"lambdas.{handler.parent.name}.handler"
        with contextlib.suppress(
            Exception
        ):  # the worker that needs this handler fails with the reason
            importlib.import_module(name)
        sys.modules.pop(name, None)
    sys.path.remove(str(code))


def read_models() -> None:
    """Reads the service models into the default session, which the workers inherit."""
    boto3.setup_default_session()
    for service in SERVICES:
        boto3.client(service, **FAKE_CREDENTIALS)  # type: ignore[call-overload]
    boto3.resource("dynamodb", **FAKE_CREDENTIALS)  # type: ignore[call-overload]


def record_calls(path: str) -> None:
    """Adds a hook to the default session, which the workers inherit: every client of a function
    records its calls.
    """

    def record(params: Mapping[str, Any], model: Any, **_: Any) -> None:
        handler = next(
            name
            for name in sys.modules
            if name.startswith("lambdas.") and name.endswith(".handler")
        )
        call = {
            "function": handler.split(".")[1],
            "service": model.service_model.service_name,
            "operation": model.name,
            "parameters": {name: named_in(value) for name, value in params.items()},
            "variables": {
                name: os.environ[name]
                for name in os.environ
                if name.endswith(RESOURCE_VARIABLE_ENDINGS)
            },
        }
        with Path(path).open(
            "ab", buffering=0
        ) as file:  # one write, which no other process can divide
            file.write(json.dumps(call).encode() + b"\n")

    assert boto3.DEFAULT_SESSION is not None
    boto3.DEFAULT_SESSION.events.register("provide-client-params", record)


def named_in(value: Any) -> Any:
    """The resource that a parameter names: its name, the source of a copy, or the tables of a
    transaction's members.
    """
    match value:
        case str():
            return value[:LONGEST_NAME]
        case {"Bucket": bucket, "Key": key}:
            return {"Bucket": bucket, "Key": key}
        case [{**first}, *_] if first.keys() & {"Put", "Update", "Delete", "ConditionCheck"}:
            return [
                {kind: write["TableName"] for kind, write in member.items()} for member in value
            ]
    return None


def reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def answer(connection: socket.socket, process_id: int) -> None:
    """The process has not been waited for, so it still has its ID, and the descriptor is its
    own.
    """
    descriptor = os.pidfd_open(process_id)
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))
    connection.sendmsg([str(process_id).encode()], [rights])
    os.close(descriptor)


def become_worker(request: dict[str, Any], files: list[int]) -> None:
    """Runs the program and ends, as ``python PROGRAM`` does."""
    sys.setrecursionlimit(DEEPEST_CALLS)
    take_over(files, request["folder"], request["environment"])
    program = request["program"]
    sys.argv = [program]
    sys.path.insert(0, str(Path(program).parent))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    runpy.run_path(program, run_name="__main__")


def take_over(files: Sequence[int], folder: str, environment: Mapping[str, str]) -> None:
    """Gives this forked process the standard files, folder and environment that a started process
    would have.
    """
    for target, file in enumerate(files):
        os.dup2(file, target)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)


if __name__ == "__main__":
    main()
