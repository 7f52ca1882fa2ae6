"""The processes that came from this one are found, signalled and reaped, also in sessions of
their own.
"""

import ctypes
import os
import signal
import sys
import time
from pathlib import Path
from typing import Callable, Dict, FrozenSet, Iterable, Iterator, List, Optional, Set, Tuple

from traindyno.callbacks.process import environment_of

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LOOK_AGAIN_SECONDS = 0.05
UNKILLABLE_SECONDS = 60.0  # a process that waits for a device in the kernel ends later, or never
NOBODY: FrozenSet[int] = frozenset()


def adopt_orphans() -> None:
    """Processes whose parent has ended become children of this one."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def end_with_parent(number: int) -> None:
    """Have the kernel send this process ``number`` when its parent ends. Called in a child, before
    exec.
    """
    _prctl(PR_SET_PDEATHSIG, number)


def descendants(kept: FrozenSet[int]) -> Set[int]:
    """Living descendants without zombies; ``kept`` are not among them, but their children are."""
    children: Dict[int, List[Tuple[int, str]]] = {}
    for process_id, parent, state in _process_table():
        children.setdefault(parent, []).append((process_id, state))
    process_ids = set()
    waiting = [os.getpid()]
    while waiting:
        for process_id, state in children.get(waiting.pop(), ()):
            waiting.append(process_id)
            if state != "Z" and process_id not in kept:
                process_ids.add(process_id)
    return process_ids


def children(process_id: int) -> Set[int]:
    """Children of a process, without zombies."""
    return {
        child for child, parent, state in _process_table() if parent == process_id and state != "Z"
    }


def send(process_ids: Iterable[int], number: int) -> None:
    for process_id in process_ids:
        try:
            os.kill(process_id, number)
        except (ProcessLookupError, PermissionError):
            continue


def wait_until_gone(
    seconds: float,
    kept: FrozenSet[int],
    meanwhile: Callable[[], None],
    signal_number: Optional[int] = None,
) -> None:
    """Reap for at most ``seconds``, until no descendant is left: children of an ended process come
    to this one. Each gets the signal again and again.
    """
    end = time.monotonic() + seconds
    while True:
        left = descendants(kept)
        if not left or time.monotonic() >= end:
            return
        if signal_number is not None:
            send(left, signal_number)
        meanwhile()
        time.sleep(LOOK_AGAIN_SECONDS)


def kill_all(kept: FrozenSet[int] = NOBODY, meanwhile: Callable[[], None] = lambda: None) -> None:
    wait_until_gone(UNKILLABLE_SECONDS, kept, meanwhile, signal.SIGKILL)


def marked(variable: str) -> Set[int]:
    """Processes, other than this one, that have ``variable`` (NAME=value) in the environment with
    which they started.
    """
    numbers = (int(folder.name) for folder in _process_folders())
    return {
        number
        for number in numbers
        if number != os.getpid() and variable.encode() in environment_of(number)
    }


def _process_table() -> Iterator[Tuple[int, int, str]]:
    for folder in _process_folders():
        try:
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if len(fields) > 1:
            yield int(folder.name), int(fields[1]), fields[0]


def _process_folders() -> Iterator[Path]:
    try:
        yield from (folder for folder in Path("/proc").iterdir() if folder.name.isdigit())
    except OSError:
        return


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
