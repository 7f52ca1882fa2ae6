"""Starts runs of the built-in tasks by forking: the imports, which are most of a run's own start, are done once."""

from pathlib import Path
from typing import Callable, Dict, FrozenSet, Optional, Set, Tuple

from traindyno.parent.forking_order import order_of, process_environment
from traindyno.parent.forking_source import FORKING_PROGRAM, Source
from traindyno.parent.launch import Child, Launcher, Setting, Start
from traindyno.parent.process_tree import children

TRAINING_PROGRAM = "traindyno_train.py"
# What the programs read when they use it. Libraries read other variables when they are imported.
READ_LATE = ("SM_", "TRAINDYNO_", "MASTER_")
# Other accelerators' libraries may touch the device when they are imported.
NOT_FORKED = ("ml.trn", "ml.inf")
# Each holds its imports in memory.
MOST_SOURCES = 3
Key = Tuple[Tuple[str, str], ...]


class ForkedChild(Child):
    """A run that was ordered from a source, whose answers it reads without blocking."""

    def __init__(self, source: Source, number: str) -> None:
        self._source, self._number = source, number
        self._status: Optional[int] = None

    @property
    def first(self) -> Set[int]:
        """It passes a stop on to its ranks, as torchrun does."""
        return children(self._source.process_id)

    def poll(self) -> Optional[int]:
        if self._status is None:
            self._status = self._read()
        return self._status

    def _read(self) -> Optional[int]:
        answer = self._source.answer()
        if answer is None:
            return None
        if answer == "":
            return self._source.end()
        number, _, status = answer.partition(" ")
        return int(status) if number == self._number else None  # an earlier run that was killed may be answered late


class ForkingLauncher(Launcher):
    """One source for each environment that libraries may have read at their import."""

    def __init__(self) -> None:
        self._sources: Dict[Key, Source] = {}
        self._can_fork = True

    @property
    def kept(self) -> FrozenSet[int]:
        return frozenset(source.process_id for source in self._sources.values())

    def make_ready(self, setting: Setting, goes_on: Callable[[], bool]) -> bool:
        """Starts a source, and waits for its imports. After one that can't fork, no later run waits for another."""
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
        if not start.is_forked:
            return super().start(start)
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
        sorted((name, value) for name, value in process_environment(setting).items() if not name.startswith(READ_LATE))
    )
