"""Starts the command line and the local SageMaker service from a process that has imported them: ``program_server``."""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

REPO_ROOT = Path(__file__).resolve().parents[2]
_asking = threading.Lock()


@dataclass(slots=True)
class ForkedProgram:
    """A ``subprocess.Popen`` of a process that the program server has started. ``wait`` raises ``TimeoutExpired``."""

    pid: int
    returncode: int | None = None
    _descriptor: int = field(init=False)

    def __post_init__(self) -> None:
        self._descriptor = os.pidfd_open(self.pid)

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._descriptor], [], [], 0)[0]:
            self._end()
        return self.returncode

    def wait(self, seconds: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._descriptor], [], [], seconds)[0]:
                raise subprocess.TimeoutExpired(f"process {self.pid}", seconds or 0)
            self._end()
        assert self.returncode is not None
        return self.returncode

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def _end(self) -> None:
        self.returncode = _ask({"ended": self.pid})
        os.close(self._descriptor)


def start_program(
    module: str, arguments: Sequence[str], *, folder: Path, environment: Mapping[str, str], output: Path, errors: Path
) -> ForkedProgram:
    """Starts ``python -m module`` in ``folder`` without input. Its output is appended to the two files."""
    request = {
        "module": module,
        "arguments": list(arguments),
        "folder": str(folder),
        "environment": dict(environment),
        "output": str(output),
        "errors": str(errors),
    }
    return ForkedProgram(_ask(request))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The output and exit status of a ``traindyno`` command."""

    status: int
    output: str
    errors: str

    def json(self) -> Any:
        return json.loads(self.output)


def run_command(*arguments: str, folder: Path, environment: Mapping[str, str], seconds: float = 300) -> Answer:
    """Runs ``python -m traindyno`` without a terminal and without input."""
    with tempfile.TemporaryDirectory() as scratch:
        output, errors = Path(scratch) / "output", Path(scratch) / "errors"
        ran = start_program(
            "traindyno", arguments, folder=folder, environment=environment, output=output, errors=errors
        )
        try:
            status = ran.wait(seconds)
        finally:
            ran.kill()
        return Answer(status=status, output=output.read_text(), errors=errors.read_text())


def _ask(request: dict[str, Any]) -> int:
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    with _asking:
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        return int(server.stdout.readline())


@cache
def _server() -> "subprocess.Popen[str]":
    """The server that starts all programs of this process. It ends when its input ends."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.local.program_server"],
        cwd=REPO_ROOT,
        env={**os.environ, "PYTHONPATH": str(REPO_ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
