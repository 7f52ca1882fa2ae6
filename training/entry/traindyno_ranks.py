"""Starts runs by forking: a process that has imported PyTorch and transformers, and has touched no
device.

Its standard input has a line for each run, as ``traindyno/parent/forking.py`` writes them; it
answers through the pipe whose descriptor is its argument: ``ready``, and number and exit code of
each run. One run at a time.
"""

import gc
import json
import os
import signal
import socket
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from traindyno.callbacks import clock
from traindyno.parent.process_tree import end_with_parent

READY = "ready"
# CUDA opens it when it begins, also where a library only asks for the number of devices.
DEVICES = "/dev/nvidia-uvm"
# With it, that question does not begin CUDA.
ASK_DRIVER = {"PYTORCH_NVML_BASED_CUDA_CHECK": "1"}
LOOK_AGAIN_SECONDS = 0.05
# torchrun waits as long.
SECONDS_BEFORE_KILL = 30.0


def main(answers: int) -> None:
    """Returns in a process that has become a rank of a run."""
    gc.disable()
    os.environ.update(ASK_DRIVER)
    import training.main  # noqa: F401, PLC0415 -- it takes seconds, which is why this program exists

    gc.freeze()
    # A stop may reach all processes: the ranks need this one until they have ended.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    problem = _why_not_forked()
    _answer(answers, problem or READY)
    if problem:
        sys.exit(1)
    for line in sys.stdin:
        order = json.loads(line)
        launcher = os.fork()
        if not launcher:
            os.close(answers)
            _launch(order)
            return
        _, status = os.waitpid(launcher, 0)
        _answer(answers, f"{order['number']} {os.waitstatus_to_exitcode(status)}")
    os._exit(0)


def _why_not_forked() -> str:
    """The reason why runs can't be forked; empty if a fork of this process can use the devices."""
    import torch  # noqa: PLC0415

    opened = [os.path.realpath(descriptor) for descriptor in Path("/proc/self/fd").iterdir()]
    is_initialized: bool = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    if is_initialized or any(name.startswith(DEVICES) for name in opened):
        return "the imports have opened a device"
    return ""


def _answer(pipe: int, text: str) -> None:
    os.write(pipe, f"{text}\n".encode())


def _launch(order: dict[str, Any]) -> None:
    """Returns in each rank. With several ranks, this process does what torchrun's agent does."""
    end_with_parent(signal.SIGKILL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.setsid()
    _become(order)
    ranks: list[dict[str, str]] = order["ranks"]
    if not ranks:
        return
    listener = socket.create_server((order["address"], order["port"])) if order["serves"] else None
    started = []
    for variables in ranks:
        process = os.fork()
        if not process:
            end_with_parent(signal.SIGKILL)
            os.setsid()
            if listener is not None:
                listener.close()
            os.environ.update(variables)
            _draw_random_state()
            return
        started.append(process)
    _watch(started, _serve(order, listener))


def _become(order: dict[str, Any]) -> None:
    output = os.open(order["output"], os.O_WRONLY | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, target in ((0, nothing), (1, output), (2, output)):
        os.dup2(target, descriptor)
    os.close(output)
    os.close(nothing)
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.argv = [order["program"], *order["arguments"]]
    tempfile.tempdir = None
    _draw_random_state()
    # A new interpreter would have a reading of the wall clock of its own.
    clock.ORIGIN = time.time() - time.perf_counter()


def _draw_random_state() -> None:
    """NumPy's, as a new interpreter does.

    Python's own is drawn at each fork, and PyTorch's is always the same.
    """
    import numpy as np  # noqa: PLC0415 -- the imports that take seconds include it

    np.random.seed()


def _serve(order: dict[str, Any], listener: socket.socket | None) -> object:
    """The store of the run's processes, on the first host.

    It has threads: nothing is forked after it.
    """
    from torch.distributed import TCPStore  # type: ignore[attr-defined]  # noqa: PLC0415

    if listener is None:
        return None
    place = (order["address"], order["port"])
    size = int(order["ranks"][0]["WORLD_SIZE"])
    return TCPStore(*place, size, True, wait_for_workers=False, master_listen_fd=listener.detach())


def _watch(ranks: list[int], store: object) -> NoReturn:
    """Exits with 0 when all have ended well.

    Otherwise the others are told to end, and killed after a while.
    """
    signal.signal(signal.SIGTERM, lambda *_: _signal_all(left, signal.SIGTERM))
    left = set(ranks)
    code = 0
    killed_at = float("inf")
    while left:
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended:
            left.discard(ended)
        if ended and status and not code:
            code = 1
            killed_at = time.monotonic() + SECONDS_BEFORE_KILL
            sys.stderr.write(
                f"rank process {ended} ended with {os.waitstatus_to_exitcode(status)}\n"
            )
            _signal_all(left, signal.SIGTERM)
        if time.monotonic() >= killed_at:
            _signal_all(left, signal.SIGKILL)
        if not ended:
            time.sleep(LOOK_AGAIN_SECONDS)
    del store
    sys.stderr.flush()
    os._exit(code)


def _signal_all(processes: set[int], number: int) -> None:
    for process in processes:
        with suppress(ProcessLookupError):  # a signal may come between its end and the note of it
            os.kill(process, number)


if __name__ == "__main__":
    main(int(sys.argv[1]))
    from training.main import main as train

    gc.enable()
    train()
