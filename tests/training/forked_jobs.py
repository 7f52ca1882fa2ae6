"""Runs jobs in processes forked from one that has imported PyTorch: the imports take most of a
small job's time.
"""

import atexit
import json
import os
import select
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TextIO

from localcloud.ports import LOOPBACK, free_port
from tests.training.jobs import REPO_ROOT, JobEnd, job_environment

HUB = ("HF_ENDPOINT", "HF_HOME", "HF_HUB_OFFLINE")


def run_forked(
    folder: Path,
    script: Path,
    *arguments: str,
    processes: int = 1,
    environment: dict[str, str] | None = None,
    timeout_seconds: float = 240,
) -> JobEnd:
    """Do what ``run_job`` does, without the launcher's own start.

    The output is that of all processes. Jobs that use a Hub of their own have a server of their
    own, because huggingface_hub reads its address when it is imported.
    """
    environment = environment or {}
    hub = {name: environment[name] for name in HUB if HUB[0] in environment}
    output = folder / "output.txt"
    output.touch()
    port = free_port()
    job = {
        "number": 0,
        "program": str(script),
        "arguments": [str(folder), *arguments],
        "environment": {**job_environment(folder), **environment},
        "output": str(output),
        "ranks": [place(rank, processes, port) for rank in range(processes)]
        if processes > 1
        else [],
        "serves": True,
        "address": LOOPBACK,
        "port": port,
    }
    library = "lightning" if "import lightning" in script.read_text() else "torch"
    server, answers = _server(library, tuple(hub.items()))
    assert server.stdin is not None
    server.stdin.write(json.dumps(job) + "\n")
    server.stdin.flush()
    readable, _, _ = select.select([answers], [], [], timeout_seconds)
    if not readable:
        server.kill()  # its processes end with it
        _server.cache_clear()
    assert readable, f"{script} did not end in time"
    status = int(answers.readline().split()[1])
    return JobEnd(exit_code=status, output=output.read_text(), folder=folder)


def place(rank: int, processes: int, port: int) -> dict[str, str]:
    """torchrun's variables of this process on the only host."""
    ranks = {name: str(rank) for name in ("RANK", "LOCAL_RANK", "ROLE_RANK")}
    sizes = {name: str(processes) for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "ROLE_WORLD_SIZE")}
    master = {
        "MASTER_ADDR": LOOPBACK,
        "MASTER_PORT": str(port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    }
    return {
        **ranks,
        **sizes,
        **master,
        "GROUP_RANK": "0",
        "GROUP_WORLD_SIZE": "1",
        "TORCHELASTIC_RUN_ID": "none",
    }


@cache
def _server(
    library: str, hub: tuple[tuple[str, str], ...]
) -> tuple["subprocess.Popen[str]", TextIO]:
    """One server starts all jobs of this process whose scripts need ``library``; it ends when its
    input does.
    """
    reader, writer = os.pipe()
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.training.job_server", str(writer), library],
        cwd=REPO_ROOT,
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "CUDA_VISIBLE_DEVICES": "",
            "HF_HUB_OFFLINE": "1",
            **dict(hub),
        },
        stdin=subprocess.PIPE,
        pass_fds=(writer,),
        text=True,
    )
    os.close(writer)
    answers = os.fdopen(reader)
    assert answers.readline() == "ready\n"
    atexit.register(server.kill)
    return server, answers
