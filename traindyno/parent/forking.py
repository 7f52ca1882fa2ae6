"""Starts runs of the built-in tasks by forking: the imports, which are most of a run's own start,
are done once.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable, Dict, FrozenSet, List, Optional, Set, Tuple

from traindyno.core.jobs.journal_format import MARK_VARIABLE, TORCHRUN
from traindyno.parent.launch import Child, Setting, Start, end_with_this_process, start_processes
from traindyno.parent.process_tree import children

FORKING_PROGRAM = "traindyno_ranks.py"
READY = "ready"
LOOK_AGAIN_SECONDS = 0.05
TRAINING_PROGRAM = "traindyno_train.py"
# What the programs read when they use it. Libraries read other variables when they are imported.
READ_LATE = ("SM_", "TRAINDYNO_", "MASTER_")
# Other accelerators' libraries may touch the device when they are imported.
NOT_FORKED = ("ml.trn", "ml.inf")
# Each holds its imports in memory.
MOST_SOURCES = 3
Key = Tuple[Tuple[str, str], ...]


def order_of(start: Start) -> Dict[str, object]:
    """Order for a process that forks.

    ``ranks`` has the variables of each rank; none for a run of one process that has no launcher.
    """
    setting = start.setting
    return {
        "program": setting.program,
        "arguments": list(start.arguments),
        "environment": process_environment(setting),
        "output": os.readlink("/proc/self/fd/{}".format(setting.output)),
        "ranks": ranks_of(start),
        "serves": start.meeting.rank == 0,
        "address": start.meeting.address,
        "port": start.meeting.port,
    }


def process_environment(setting: Setting) -> Dict[str, str]:
    """torchrun gives each of several processes one thread, unless the environment says another
    number.
    """
    has_several = setting.run.launcher == TORCHRUN and setting.run.processes_per_host > 1
    return {**({"OMP_NUM_THREADS": "1"} if has_several else {}), **setting.environment}


def ranks_of(start: Start) -> List[Dict[str, str]]:
    """What torchrun sets for each process of this host."""
    run = start.setting.run
    environment = start.setting.environment
    meeting = start.meeting
    if run.launcher != TORCHRUN:
        return []
    local_size = run.processes_per_host
    size = meeting.hosts * local_size
    of_all = {
        **{name: str(size) for name in ("WORLD_SIZE", "ROLE_WORLD_SIZE")},
        "LOCAL_WORLD_SIZE": str(local_size),
        "GROUP_RANK": str(meeting.rank),
        "GROUP_WORLD_SIZE": str(meeting.hosts),
        "ROLE_NAME": "default",
        "MASTER_ADDR": meeting.address,
        "MASTER_PORT": str(meeting.port),
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
        "TORCHELASTIC_RUN_ID": meeting.name,
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": environment.get("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"),
    }
    ranks = []
    for local_rank in range(local_size):
        rank = str(meeting.rank * local_size + local_rank)
        ranks.append({**of_all, "LOCAL_RANK": str(local_rank), "RANK": rank, "ROLE_RANK": rank})
    return ranks


class Source:
    """A process that does the imports, and then forks."""

    def __init__(self, setting: Setting) -> None:
        reader, writer = os.pipe()
        # Ranks have the mark in their own environment: this process has not started them.
        environment = {
            name: value
            for name, value in process_environment(setting).items()
            if name != MARK_VARIABLE
        }
        try:
            self._process = subprocess.Popen(
                [sys.executable, FORKING_PROGRAM, str(writer)],
                stdin=subprocess.PIPE,
                stdout=setting.output,
                stderr=subprocess.STDOUT,
                env=environment,
                pass_fds=(writer,),
                start_new_session=True,
                preexec_fn=end_with_this_process,  # noqa: PLW1509 -- the parent has one thread
            )
        finally:
            os.close(writer)
        os.set_blocking(reader, False)
        self._reader = reader
        self._text = b""
        self._orders = 0

    @property
    def process_id(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def becomes_ready(self, goes_on: Callable[[], bool]) -> bool:
        """False if it says why it can't fork, ends, or is not waited for any longer."""
        while goes_on():
            answer = self.answer()
            if answer is not None:
                return answer == READY
            time.sleep(LOOK_AGAIN_SECONDS)
        return False

    def answer(self) -> Optional[str]:
        """The next line; None if there is none yet, empty if there will be none."""
        while b"\n" not in self._text:
            try:
                block = os.read(self._reader, 4096)
            except BlockingIOError:
                return None
            if not block:
                return ""
            self._text += block
        line, _, self._text = self._text.partition(b"\n")
        return line.decode()

    def order(self, document: Dict[str, object]) -> str:
        """The number with which the answer begins."""
        assert self._process.stdin is not None
        self._orders += 1
        self._process.stdin.write(json.dumps({**document, "number": self._orders}).encode() + b"\n")
        self._process.stdin.flush()
        return str(self._orders)

    def end(self) -> int:
        """Its exit code or negative signal, never 0."""
        self._process.kill()
        return self._process.wait() or 1


class ForkedChild(Child):
    """A run that was ordered from a source, whose answers it reads without blocking."""

    def __init__(self, source: Source, number: str) -> None:
        self._source = source
        self._number = number
        self._status: Optional[int] = None

    @property
    def first(self) -> Set[int]:
        """It passes a stop on to its ranks, as torchrun does."""
        return children(self._source.process_id)

    def poll(self) -> Optional[int]:
        answer = self._source.answer() if self._status is None else None
        if answer == "":
            self._status = self._source.end()
        elif answer is not None:
            number, _, status = answer.partition(" ")
            if number == self._number:  # an earlier run that was killed may be answered late
                self._status = int(status)
        return self._status


class ForkingLauncher:
    """One source for each environment that libraries may have read at their import."""

    def __init__(self) -> None:
        self._sources: Dict[Key, Source] = {}
        self._can_fork = True

    @property
    def kept(self) -> FrozenSet[int]:
        """Processes that outlive a run, because the next one's are made from them."""
        return frozenset(source.process_id for source in self._sources.values())

    def make_ready(self, setting: Setting, goes_on: Callable[[], bool]) -> bool:
        """Whether a run in this setting can be forked.

        Starts a source, and waits for its imports while ``goes_on()``. After one that can't fork,
        no later run waits for another.
        """
        if not (self._can_fork and can_fork(setting)):
            return False
        key = key_of(setting)
        source = self._sources.get(key)
        if source is not None and source.is_alive:
            return True
        if source is None and len(self._sources) >= MOST_SOURCES:
            return False
        source = self._sources[key] = Source(setting)
        try:
            self._can_fork = False
            self._can_fork = source.becomes_ready(goes_on)
        finally:
            if not self._can_fork:
                source.end()
        return self._can_fork

    def start(self, start: Start) -> Child:
        """Raises OSError if the program can't be started."""
        if not start.is_forked:
            return start_processes(start)
        source = self._sources[key_of(start.setting)]
        return ForkedChild(source, source.order(order_of(start)))


def can_fork(setting: Setting) -> bool:
    environment = setting.environment
    return (
        setting.program == TRAINING_PROGRAM
        and Path(FORKING_PROGRAM).exists()
        and not environment.get("SM_CURRENT_INSTANCE_TYPE", "").startswith(NOT_FORKED)
        and environment.get("RUN_NEURON_PARALLEL_COMPILE") != "1"
    )


def key_of(setting: Setting) -> Key:
    return tuple(
        sorted(
            (name, value)
            for name, value in process_environment(setting).items()
            if not name.startswith(READ_LATE)
        )
    )
