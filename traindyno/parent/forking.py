"""Starts runs of the built-in tasks by forking: the imports, which are most of a run's own start, are done once."""

import os
import signal
from pathlib import Path
from typing import Callable, Dict, FrozenSet, Optional, Tuple

from traindyno.parent.forking_order import order_of, process_environment
from traindyno.parent.forking_source import FORKING_PROGRAM, Source
from traindyno.parent.launch import Child, Launcher, Start

TRAINING_PROGRAM = "traindyno_train.py"
READY = "ready"
# What the programs read when they use it. Libraries read other variables when they are imported.
READ_LATE = ("SM_", "TRAINDYNO_", "MASTER_")
# Other accelerators' libraries may touch the device when they are imported.
NOT_FORKED = ("ml.trn", "ml.inf")
# Each holds its imports in memory.
MOST_SOURCES = 3
Key = Tuple[Tuple[str, str], ...]


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
