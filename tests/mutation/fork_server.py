"""Runs pytest in forks of one process that has imported the libraries, but nothing of the core.

An order is one JSON line of stdin, its answer one of stdout. A fork starts in milliseconds, an interpreter in seconds.
"""

import gc
import importlib
import importlib.metadata
import json
import os
import resource
import signal
import sys
import tempfile
import time
from typing import IO

import pytest

LIBRARIES = (
    "boto3.session",
    "botocore.stub",
    "cattrs.preconf.json",
    "coverage",
    "jsonschema",
    "numpy",
    "rich.console",
    "rich.live",
    "rich.table",
    "sagemaker.estimator",
    "scipy.stats",
    "statsmodels.api",
    "typer.testing",
    "yaml",
)
OPTIONS = ("-q", "-x", "-n0", "-p", "no:cacheprovider", "--tb=no", "--no-header")
# A fault that appends without end must not take the machine's memory.
MOST_BYTES = 8 * 2**30


def main() -> None:
    # Libraries write to stdout as they are imported: the answers have the pipe for themselves.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    _preload()
    for line in sys.stdin:
        order = json.loads(line)
        answers.write(json.dumps(_run(**order)) + "\n")
        answers.flush()


def _preload() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    for name in LIBRARIES:
        importlib.import_module(name)
    for plugin in importlib.metadata.entry_points(group="pytest11"):
        plugin.load()
    gc.collect()
    gc.freeze()


def _run(tests: list[str], cpu_seconds: int, test_seconds: int) -> dict[str, object]:
    """``status`` is pytest's; it is the negative signal number if a signal ended the fork, as past ``cpu_seconds``."""
    begin = time.monotonic()
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            _become_pytest([*tests, "--timeout", str(test_seconds)], cpu_seconds, output)
        _, status = os.waitpid(child, 0)
        output.seek(0)
        text = output.read().decode(errors="replace")
    ended = os.waitstatus_to_exitcode(status)
    return {"status": ended, "output": text[-4000:], "seconds": time.monotonic() - begin}


def _become_pytest(arguments: list[str], cpu_seconds: int, output: IO[bytes]) -> None:
    status = 70
    try:
        os.setsid()
        for stream in (1, 2):
            os.dup2(output.fileno(), stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        signal.signal(signal.SIGXCPU, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 5))
        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
        status = int(pytest.main([*OPTIONS, *arguments]))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main()
