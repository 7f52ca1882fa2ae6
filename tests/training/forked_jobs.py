"""Runs jobs in processes forked from one that has imported PyTorch and transformers, which takes most of a small job.

usage: forked_jobs.py JOBS
"""

import json
import os
import runpy
import socket
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.training.jobs import REPO_ROOT, JobEnd, job_environment

LIMIT_SECONDS = 150
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkedJob:
    """``path``: a folder that comes before the others from which modules are imported."""

    folder: Path
    script: Path
    arguments: tuple[str, ...] = ()
    processes: int = 1
    environment: dict[str, str] = field(default_factory=dict)
    path: Path | None = None


def run_jobs(jobs: list[ForkedJob], scratch: Path) -> list[JobEnd]:
    """One after another. A job's output is that of all its processes; its status is the highest of theirs."""
    listed = scratch / "jobs.json"
    documents = [{**asdict(job), "environment": {**job_environment(job.folder), **job.environment}} for job in jobs]
    listed.write_text(json.dumps(documents, default=str))
    ran = subprocess.run(
        [sys.executable, "-m", "tests.training.forked_jobs", str(listed)],
        cwd=REPO_ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(REPO_ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        timeout=LIMIT_SECONDS,
        check=True,
    )
    statuses = json.loads(ran.stdout)
    return [
        JobEnd(exit_code=status, output=(job.folder / "output.txt").read_text(), folder=job.folder)
        for job, status in zip(jobs, statuses, strict=True)
    ]


def main(listed: Path) -> None:
    import_before_forking()
    statuses = []
    for job in json.loads(listed.read_text()):
        port = _free_port()
        started = []
        for rank in range(job["processes"]):
            process = os.fork()
            if not process:
                return run_as(job, rank, port)
            started.append(process)
        statuses.append(max(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in started))
    sys.stdout.write(json.dumps(statuses))
    return None


def import_before_forking() -> None:
    from transformers import GPT2LMHeadModel, GPTJForCausalLM  # noqa: F401

    import training.main  # noqa: F401


def run_as(job: dict[str, Any], rank: int, port: int) -> None:
    """This process becomes one of the job's, with torchrun's variables, and ends as the script ends."""
    output = os.open(Path(job["folder"]) / "output.txt", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.dup2(output, sys.stdout.fileno())
    os.dup2(output, sys.stderr.fileno())
    os.chdir(job["folder"])
    os.environ.update(job["environment"], RANK=str(rank), LOCAL_RANK=str(rank))
    os.environ.update(WORLD_SIZE=str(job["processes"]), LOCAL_WORLD_SIZE=str(job["processes"]))
    if job["processes"] > 1:
        os.environ.update(MASTER_ADDR=LOOPBACK, MASTER_PORT=str(port))
    # The step log of this process is the one that its environment names, not the one from before forking.
    sys.modules.pop("traindyno.callbacks", None)
    sys.argv = [job["script"], *job["arguments"]]
    sys.path[:0] = [str(Path(job["script"]).parent), *([job["path"]] if job["path"] else [])]
    runpy.run_path(job["script"], run_name="__main__")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((LOOPBACK, 0))
        return int(free.getsockname()[1])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
