"""Starts the command line and the local SageMaker service from a process that has imported them,
because their imports take most of their time.
"""

import json
import multiprocessing
import os
import runpy
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from localcloud.worker_fork_server import take_over

REPO_ROOT = Path(__file__).resolve().parents[2]
_FORKING = multiprocessing.get_context("forkserver")
_FORKING.set_forkserver_preload(["traindyno.cli.main", "localcloud.sagemaker_service.__main__"])

KEPT = ("PATH", "LD_LIBRARY_PATH", "XDG_CACHE_HOME")


def start_program(
    module: str,
    arguments: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    output: Path,
    errors: Path,
) -> BaseProcess:
    """Starts ``python -m module`` in ``folder`` without input.

    Its output is appended to the two files.
    """
    os.unsetenv(
        "COLUMNS"
    )  # readline may have set it for the programs, though not in ``os.environ``
    given = (module, arguments, str(folder), dict(environment), (str(output), str(errors)))
    process = _FORKING.Process(target=_run, args=given, daemon=True)
    process.start()
    return process


def _run(
    module: str,
    arguments: Sequence[str],
    folder: str,
    environment: Mapping[str, str],
    outputs: Sequence[str],
) -> None:
    """Runs the program in this process, and ends as the program does."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    files = [os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644) for path in outputs]
    take_over([os.open(os.devnull, os.O_RDONLY), *files], folder, environment)
    sys.argv = [module, *arguments]
    # Each program is imported already under another name, so that only its last lines run again.
    runpy.run_module(module, run_name="__main__", alter_sys=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The output and exit status of a ``traindyno`` command."""

    status: int
    output: str
    errors: str

    def json(self) -> Any:
        return json.loads(self.output)


def run_command(
    *arguments: str,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    seconds: float = 300,
) -> Answer:
    """Runs ``python -m traindyno`` without a terminal, without input and without estimates of
    memory; without an ``environment``, in one that leads to no account and has its home in the
    folder.
    """
    if environment is None:
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        environment = {
            **kept,
            "HOME": str(folder),
            "PYTHONPATH": str(REPO_ROOT),
            "AWS_EC2_METADATA_DISABLED": "true",
        }
    with tempfile.TemporaryDirectory() as scratch:
        output = Path(scratch) / "output"
        errors = Path(scratch) / "errors"
        ran = start_program(
            "traindyno",
            arguments,
            folder=folder,
            environment={"TRAINDYNO_NO_MEMORY": "1", **environment},
            output=output,
            errors=errors,
        )
        ran.join(seconds)
        status = ran.exitcode
        ran.kill()
        assert status is not None, f"traindyno {' '.join(arguments)} still runs after {seconds} s"
        return Answer(status=status, output=output.read_text(), errors=errors.read_text())
