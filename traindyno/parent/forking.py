"""Starts runs of the built-in tasks by forking: the imports, which are most of a run's own start, are done once."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Callable, Dict, FrozenSet, List, Optional, Tuple

from traindyno.core.jobs.journal_format import MARK_VARIABLE, TORCHRUN
from traindyno.parent.launch import Child, Launcher, Start
from traindyno.parent.process_tree import end_with_parent

TRAINING_PROGRAM, FORKING_PROGRAM = "traindyno_train.py", "traindyno_ranks.py"
READY = "ready"
# What the programs read when they use it. Libraries read other variables when they are imported.
READ_LATE = ("SM_", "TRAINDYNO_", "MASTER_")
# Other accelerators' libraries may touch the device when they are imported.
NOT_FORKED = ("ml.trn", "ml.inf")
# Each holds its imports in memory.
MOST_SOURCES = 3
Key = Tuple[Tuple[str, str], ...]


class Source:
    """A process that has done the imports, and forks. ``answers``: what it has said and nobody has read."""

    def __init__(self, start: Start) -> None:
        reader, writer = os.pipe()
        # Ranks have the mark in their own environment: this process has not started them.
        environment = {name: value for name, value in process_environment(start).items() if name != MARK_VARIABLE}
        try:
            self._process = subprocess.Popen(
                [sys.executable, FORKING_PROGRAM, str(writer)],
                stdin=subprocess.PIPE,
                stdout=start.output,
                stderr=subprocess.STDOUT,
                env=environment,
                pass_fds=(writer,),
                start_new_session=True,
                preexec_fn=_end_with_parent,  # noqa: PLW1509 -- the parent has one thread
            )
        finally:
            os.close(writer)
        os.set_blocking(reader, False)
        self._reader = reader
        self._text = b""
        self._orders = 0
        self.is_ready = False

    @property
    def process_id(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

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
    """Waits for its source without blocking. A source that can't fork is replaced by a new interpreter."""

    def __init__(self, source: Source, start: Start, start_fresh: Callable[[Start], Child]) -> None:
        self._source, self._make_fresh = source, start_fresh
        self._start = start._replace(output=os.dup(start.output))
        self._fresh: Optional[Child] = None
        self._status: Optional[int] = None
        self._number: Optional[str] = None

    def poll(self) -> Optional[int]:
        if self._fresh is None and self._status is None:
            self._work()
        return self._status if self._fresh is None else self._fresh.poll()

    def give_up(self) -> None:
        if self._fresh is None and self._number is None:
            self._end(-signal.SIGTERM)

    def _work(self) -> None:
        if self._source.is_ready and self._number is None:
            self._order()
            return
        answer = self._source.answer()
        if answer == READY:
            self._source.is_ready = True
        elif answer is not None and self._number is None:
            self._start_fresh()
        elif answer == "":
            self._end(self._source.end())
        elif answer is not None:
            number, _, status = answer.partition(" ")
            if number == self._number:  # an earlier run that was killed may be answered late
                self._end(int(status))

    def _order(self) -> None:
        try:
            self._number = self._source.order(order_of(self._start))
        except OSError:
            self._start_fresh()

    def _start_fresh(self) -> None:
        self._source.end()
        self._fresh = self._make_fresh(self._start)
        os.close(self._start.output)

    def _end(self, status: int) -> None:
        self._status = status
        os.close(self._start.output)


class ForkingLauncher(Launcher):
    """One source for each environment that libraries may have read at their import."""

    def __init__(self) -> None:
        self._sources: Dict[Key, Source] = {}
        self._can_fork = True

    @property
    def kept(self) -> FrozenSet[int]:
        return frozenset(source.process_id for source in self._sources.values())

    def start(self, start: Start) -> Child:
        if not (self._can_fork and can_fork(start)):
            return super().start(start)
        key = key_of(start)
        source = self._sources.get(key)
        if source is None and len(self._sources) >= MOST_SOURCES:
            return super().start(start)
        if source is None or not source.is_alive:
            source = self._sources[key] = Source(start)
        return ForkedChild(source, start, self._start_without_source)

    def _start_without_source(self, start: Start) -> Child:
        """Later runs don't wait for imports that lead to nothing."""
        self._can_fork = False
        return super().start(start)


def can_fork(start: Start) -> bool:
    environment = start.environment
    return (
        start.program == TRAINING_PROGRAM
        and Path(FORKING_PROGRAM).exists()
        and not environment.get("SM_CURRENT_INSTANCE_TYPE", "").startswith(NOT_FORKED)
        and environment.get("RUN_NEURON_PARALLEL_COMPILE") != "1"
    )


def key_of(start: Start) -> Key:
    return tuple(
        sorted((name, value) for name, value in process_environment(start).items() if not name.startswith(READ_LATE))
    )


def order_of(start: Start) -> Dict[str, object]:
    """``ranks``: the variables of each; none for a run of one process that has no launcher."""
    return {
        "program": start.program,
        "arguments": list(start.arguments),
        "environment": process_environment(start),
        "output": "/proc/{}/fd/{}".format(os.getpid(), start.output),
        "ranks": ranks_of(start),
        "serves": start.meeting.rank == 0,
        "address": start.meeting.address,
        "port": start.meeting.port,
    }


def process_environment(start: Start) -> Dict[str, str]:
    """torchrun gives each of several processes one thread, unless the environment says another number."""
    has_several = start.run.launcher == TORCHRUN and start.run.processes_per_host > 1
    return {**({"OMP_NUM_THREADS": "1"} if has_several else {}), **start.environment}


def ranks_of(start: Start) -> List[Dict[str, str]]:
    """What torchrun sets for each process of this host."""
    if start.run.launcher != TORCHRUN:
        return []
    meeting, local_size = start.meeting, start.run.processes_per_host
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
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": start.environment.get("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"),
    }
    ranks = []
    for local_rank in range(local_size):
        rank = str(meeting.rank * local_size + local_rank)
        ranks.append({**of_all, "LOCAL_RANK": str(local_rank), "RANK": rank, "ROLE_RANK": rank})
    return ranks


def _end_with_parent() -> None:
    end_with_parent(signal.SIGKILL)
