"""Starts the jobs that it reads, one a line, by forking: a program for ``forked_jobs``.

Each job has a launcher of its own that does what torchrun does: it keeps the processes' store, and ends them all when
one of them fails.
"""

import atexit
import gc
import json
import os
import runpy
import signal
import socket
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from torch.distributed import TCPStore  # type: ignore[attr-defined]

LOOPBACK = "127.0.0.1"
LOOK_AGAIN_SECONDS = 0.02
# torchrun waits as long.
SECONDS_BEFORE_KILL = 30.0
TIMED_OUT = 124
IMPORTED = (
    "training.main",
    "training.prepare_data",
    *(f"training.strategies.{name}" for name in ("ddp", "zero1", "mesh", "whole_model")),
    *(f"transformers.models.{name}.modeling_{name}" for name in ("gpt2", "gptj", "bert", "albert", "llama")),
)


def main() -> None:
    for name in IMPORTED:
        import_module(name)
    for line in sys.stdin:
        job = json.loads(line)
        for name in job["modules"]:
            import_module(name)
        gc.freeze()  # what was imported is never collected, so that jobs share its memory
        launcher = os.fork()
        if not launcher:
            launch(job)
        _, status = os.waitpid(launcher, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def become(job: dict[str, Any]) -> None:
    """This process has the job's output, folder and environment, and nothing of the server's."""
    output = os.open(Path(job["folder"]) / "output.txt", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    for stream, target in ((sys.stdin, os.open(os.devnull, os.O_RDONLY)), (sys.stdout, output), (sys.stderr, output)):
        os.dup2(target, stream.fileno())
    os.chdir(job["folder"])
    os.environ.clear()
    os.environ.update(job["environment"])
    tempfile.tempdir = None


def launch(job: dict[str, Any]) -> NoReturn:
    become(job)
    listener = socket.create_server((LOOPBACK, 0))
    _, port = listener.getsockname()
    started = []
    for rank in range(job["processes"]):
        process = os.fork()
        if not process:
            listener.close()
            run(job, place(rank, job["processes"], port) if job["processes"] > 1 else {})
        started.append(process)
    # A thread of this process answers for the store, so that it is made when nothing is forked any more.
    store = TCPStore(LOOPBACK, port, job["processes"], True, wait_for_workers=False, master_listen_fd=listener.detach())
    answer = watch(started, time.monotonic() + job["limit_seconds"])
    del store
    os._exit(answer)


def place(rank: int, processes: int, port: int) -> dict[str, str]:
    """torchrun's variables of this process on the only host."""
    ranks = {name: str(rank) for name in ("RANK", "LOCAL_RANK", "ROLE_RANK")}
    sizes = {name: str(processes) for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "ROLE_WORLD_SIZE")}
    master = {"MASTER_ADDR": LOOPBACK, "MASTER_PORT": str(port), "TORCHELASTIC_USE_AGENT_STORE": "True"}
    return {**ranks, **sizes, **master, "GROUP_RANK": "0", "GROUP_WORLD_SIZE": "1", "TORCHELASTIC_RUN_ID": "none"}


def watch(processes: list[int], deadline: float) -> int:
    """0 when all have ended well; otherwise the others are told to end, and killed after a while."""
    left, answer = set(processes), 0
    while left:
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended:
            left.discard(ended)
            if status and not answer:
                answer, deadline = 1, time.monotonic() + SECONDS_BEFORE_KILL
                signal_all(left, signal.SIGTERM)
        elif time.monotonic() > deadline:
            answer = answer or TIMED_OUT
            signal_all(left, signal.SIGKILL)
        else:
            time.sleep(LOOK_AGAIN_SECONDS)
    return answer


def signal_all(processes: set[int], number: signal.Signals) -> None:
    for process in processes:
        os.kill(process, number)


def run(job: dict[str, Any], variables: dict[str, str]) -> NoReturn:
    """This process runs the script and ends as the script does, without the seconds that freeing the imports takes."""
    os.environ.update(variables)
    # The step log of this process is the one that its environment names, not the one from before forking.
    sys.modules.pop("traindyno.callbacks", None)
    sys.argv = [job["script"], *job["arguments"]]
    sys.path[:0] = [str(Path(job["script"]).parent), *([job["path"]] if job["path"] else [])]
    status = 0
    try:
        runpy.run_path(job["script"], run_name="__main__")
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001 -- the script's own hook names it, as at any program's end
        sys.excepthook(*sys.exc_info())
        status = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
