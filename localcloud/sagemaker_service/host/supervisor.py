"""Runs one host's launcher and ends every process that came from it.

A program of its own, standard library only.

Its argument names the file with its order. It reads commands from standard input: ``stop`` sends
SIGTERM, to all processes, to the launcher only or to none, and SIGKILL to all after the grace time.
If the input ends, because the service has ended, the grace time is at most two seconds.

The processes write their output to a pipe. This program copies it to the log file.
"""

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LOOK_AGAIN_SECONDS = 0.1
ORPHANED_GRACE_SECONDS = 2.0
LAST_OUTPUT_SECONDS = 5.0
COPIED_BYTES = 2**20


def copy_output(source: int, file: BinaryIO, end: int) -> None:
    """Closes ``end`` when no process has the pipe open any more.

    Without space on the disk, output is lost: a process must not wait for it.
    """
    try:
        while block := os.read(source, COPIED_BYTES):
            with contextlib.suppress(OSError):
                file.write(block)
    finally:
        os.close(end)


def main(order_path: str) -> int:
    order: dict[str, Any] = json.loads(Path(order_path).read_text(encoding="utf-8"))
    _call_prctl(PR_SET_CHILD_SUBREAPER, 1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, order["cores"])
    for number in (signal.SIGTERM, signal.SIGINT):
        # The handler does nothing. The launcher would inherit SIG_IGN and ignore a stop.
        signal.signal(number, lambda *_: None)
    source, sink = os.pipe()
    launcher = subprocess.Popen(
        order["command"],
        cwd=order["folder"],
        env=order["environment"],
        stdin=subprocess.DEVNULL,
        stdout=sink,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=partial(_before_launch, order["memory_bytes"]),  # noqa: PLW1509 -- one thread until the launcher runs
    )
    os.close(sink)
    file = Path(order["log"]).open("ab", buffering=0)  # noqa: SIM115 -- the copying thread writes until the end
    copied, end = os.pipe()
    copying = threading.Thread(target=copy_output, args=(source, file, end), daemon=True)
    copying.start()
    code = _watch(launcher, copied, file, order["grace_seconds"], stops=order["stops"])
    while _signal_descendants(
        signal.SIGKILL
    ):  # the children of an ended process become children of this one
        time.sleep(LOOK_AGAIN_SECONDS)
    copying.join(LAST_OUTPUT_SECONDS)
    return code


def _watch(
    launcher: "subprocess.Popen[bytes]",
    copied: int,
    file: BinaryIO,
    grace_seconds: float,
    *,
    stops: str,
) -> int:
    """Returns when the launcher has ended, and its output is copied so that ``copied`` is at its
    end: the training toolkit reads until each process has closed its output, so that one which
    outlives the script keeps the job until its limit.
    """
    deadline = tells_at = float("inf")
    inputs = [sys.stdin.fileno()]
    ends = [copied]  # readable at the end: a later look would be billed
    with contextlib.suppress(AttributeError, OSError):  # not Linux, or an older kernel
        ends.append(os.pidfd_open(launcher.pid))
    was_held_open = False
    has_ended = False
    while launcher.poll() is None or copied in ends:
        readable, _, _ = select.select([*inputs, *ends], [], [], LOOK_AGAIN_SECONDS)
        if set(readable) & set(inputs):
            command = os.read(inputs[0], 64)
            if deadline == float("inf"):
                was_held_open = launcher.poll() is not None
            seconds = grace_seconds if command else min(grace_seconds, ORPHANED_GRACE_SECONDS)
            deadline = min(deadline, time.monotonic() + seconds)
            inputs = inputs if command else []
            if stops == "all":
                _signal_descendants(signal.SIGTERM)
            elif stops == "launcher":
                launcher.send_signal(signal.SIGTERM)
        if time.monotonic() >= deadline:
            _signal_descendants(signal.SIGKILL)
        ends = [end for end in ends if end not in readable]
        if not has_ended and launcher.poll() is not None:
            has_ended = True
            tells_at = time.monotonic() + LAST_OUTPUT_SECONDS
        if time.monotonic() >= tells_at:
            tells_at = float("inf")
            holders = "; ".join(
                f"process {process_id} ({_command_of(process_id)})" for process_id in _descendants()
            )
            text = (
                f"The script has ended, and its output is still open in {holders}. As on "
                "SageMaker, the job goes on"
            )
            file.write(f"{text} until it is closed, at most to the job's limit.\n".encode())
    if (was_held_open or time.monotonic() >= deadline) and not launcher.returncode:
        return 128 + signal.SIGKILL  # the toolkit, which still read, did not end by itself
    return launcher.returncode if launcher.returncode >= 0 else 128 - launcher.returncode


def _command_of(process_id: int) -> str:
    try:
        return (
            Path(f"/proc/{process_id}/cmdline")
            .read_bytes()
            .replace(b"\0", b" ")
            .decode(errors="replace")
            .strip()
        )
    except OSError:
        return "unknown"


def _signal_descendants(number: signal.Signals) -> int:
    descendants = _descendants()
    for process_id in descendants:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process_id, number)
    return len(descendants)


def _descendants() -> list[int]:
    """The process IDs of living descendants, without zombies."""
    children: dict[int, list[tuple[int, str]]] = {}
    for process_id, parent, state in _process_table():
        children.setdefault(parent, []).append((process_id, state))
    living = []
    open_parents = [os.getpid()]
    while open_parents:
        for process_id, state in children.get(open_parents.pop(), []):
            open_parents.append(process_id)
            if not state.startswith("Z"):
                living.append(process_id)
    return living


def _process_table() -> Iterator[tuple[int, int, str]]:
    """The ID, parent and state of each process, from /proc, or from ``ps`` where there is no
    /proc.
    """
    if not Path("/proc/self/stat").exists():
        command = ["ps", "-A", "-o", "pid=,ppid=,stat="]
        for line in subprocess.run(
            command, capture_output=True, text=True, check=True
        ).stdout.splitlines():
            process_id, parent, state = line.split(None, 2)
            yield int(process_id), int(parent), state
        return
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                state, parent = (
                    (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
                )
                yield int(folder.name), int(parent), state


def _call_prctl(option: int, argument: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, argument, 0, 0, 0)


def _before_launch(memory_bytes: int | None) -> None:
    """Prepares the launcher, in its process.

    It dies with this program, and its processes inherit the limit of their memory.
    """
    _call_prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if memory_bytes is not None and sys.platform == "linux":
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        most = memory_bytes if hard == resource.RLIM_INFINITY else min(memory_bytes, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
