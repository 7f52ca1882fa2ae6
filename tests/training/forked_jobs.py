"""Runs jobs in processes forked from one that has imported PyTorch: the imports take most of a small job's time."""

import atexit
import json
import os
import select
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tests.training.jobs import REPO_ROOT, JobEnd, job_environment

ANSWER_SECONDS = 60


def run_forked(
    folder: Path,
    script: Path,
    *arguments: str,
    processes: int = 1,
    environment: dict[str, str] | None = None,
    timeout_seconds: float = 240,
    path: Path | None = None,
    modules: Sequence[str] = (),
) -> JobEnd:
    """Do what ``run_job`` does, without the launcher's own start. The output is that of all processes.

    ``path``: a folder that comes before the others from which modules are imported. ``modules``: what the script
    imports beside PyTorch and transformers; it is imported once for all jobs.
    """
    job = {
        "folder": str(folder),
        "script": str(script),
        "arguments": arguments,
        "processes": processes,
        "environment": {**job_environment(folder), **(environment or {})},
        "limit_seconds": timeout_seconds,
        "path": str(path) if path else None,
        "modules": modules,
    }
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps(job) + "\n")
    server.stdin.flush()
    readable, _, _ = select.select([server.stdout], [], [], timeout_seconds + ANSWER_SECONDS)
    assert readable, f"{script} did not end in time"
    status = int(server.stdout.readline())
    return JobEnd(exit_code=status, output=(folder / "output.txt").read_text(), folder=folder)


@cache
def _server() -> "subprocess.Popen[str]":
    """One server starts all jobs of this process; it ends when its input does."""
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.training.job_server"],
        cwd=REPO_ROOT,
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "CUDA_VISIBLE_DEVICES": "",
            "HF_HUB_OFFLINE": "1",
            "PYTHONPATH": str(REPO_ROOT),
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(server.terminate)
    return server
