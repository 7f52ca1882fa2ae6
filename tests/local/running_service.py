"""Starts the local SageMaker service in a process and ends it."""

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from localcloud.gate import authorization
from tests.local.forked_programs import REPO_ROOT, start_program

LOOK_AGAIN_SECONDS = 0.05
ACCESS_KEY = "test"
SIGNED = authorization(ACCESS_KEY)


class ServiceNotReady(Exception):
    """The service ended, or did not answer in time. The message has the end of its output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningService:
    process: BaseProcess
    endpoint: str
    state_folder: Path

    def health(self) -> dict[str, Any]:
        health: dict[str, Any] = self.administer("/health")
        return health

    def administer(self, path: str, document: Mapping[str, Any] | None = None) -> Any:
        return administer(self.endpoint, path, document)

    def stop(self, seconds: float = 30.0) -> None:
        self.process.terminate()
        self.process.join(seconds)
        self.process.kill()
        self.process.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def start_service(
    state_folder: Path, aws_endpoint: str, *options: str, port: int = 0, wait_seconds: float = 30.0
) -> RunningService:
    """Starts ``python -m localcloud.sagemaker_service`` with further options."""
    state_folder.mkdir(parents=True, exist_ok=True)
    port_file = state_folder / "port"
    port_file.unlink(missing_ok=True)
    arguments = [
        "--port",
        str(port),
        "--state",
        str(state_folder),
        "--aws-endpoint",
        aws_endpoint,
        *options,
    ]
    output = state_folder / "output.txt"
    process = start_program(
        "localcloud.sagemaker_service",
        arguments,
        folder=REPO_ROOT,
        environment={**os.environ, "AWS_ACCESS_KEY_ID": ACCESS_KEY},
        output=output,
        errors=output,
    )
    endpoint = _wait_until_ready(process, port_file, wait_seconds, arguments)
    return RunningService(process=process, endpoint=endpoint, state_folder=state_folder)


def administer(
    endpoint: str,
    path: str,
    document: Mapping[str, Any] | None = None,
    access_key: str = ACCESS_KEY,
) -> Any:
    """The answer of a path that is not AWS's to a GET, or to a POST of the document."""
    data = None if document is None else json.dumps(document).encode()
    headers = {"Content-Type": "application/json", **authorization(access_key)}
    request = urllib.request.Request(f"{endpoint}{path}", data, headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def _wait_until_ready(
    process: BaseProcess, port_file: Path, wait_seconds: float, arguments: Sequence[str]
) -> str:
    deadline = time.monotonic() + wait_seconds
    while time.monotonic() < deadline and process.exitcode is None:
        text = port_file.read_text(encoding="utf-8").strip() if port_file.exists() else ""
        if text:
            endpoint = f"http://127.0.0.1:{text}"
            try:
                administer(endpoint, "/health")
            except urllib.error.URLError:
                time.sleep(LOOK_AGAIN_SECONDS)
                continue
            return endpoint
        time.sleep(LOOK_AGAIN_SECONDS)
    process.kill()
    process.join()
    output = (port_file.parent / "output.txt").read_text(encoding="utf-8", errors="replace")[-2000:]
    raise ServiceNotReady(
        f"the service with {' '.join(arguments)} did not answer within {wait_seconds:g} s:\n"
        f"{output}"
    )
