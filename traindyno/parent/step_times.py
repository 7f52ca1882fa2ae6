"""The step logs of one run's processes on this host, read while they grow."""

import json
from pathlib import Path
from typing import Any, Dict, FrozenSet, List, NamedTuple, Optional

from traindyno.core.search.outpaced import MOST_STEPS
from traindyno.core.step_log.line import (
    ALLOCATOR_RETRIES,
    BATCH_SEARCH,
    COMPILE,
    KEPT_STEPS,
    RETRIES,
    SETUP,
    TOKENS,
    UNLOGGED_STEPS,
    WORK_UNIT,
)

BLOCK_BYTES = 2**18


class Step(NamedTuple):
    begin: float
    end: float
    samples: float
    tokens: float


class Steps(NamedTuple):
    """Steps of all processes. ``begin``: the first step's, in epoch seconds. Samples and tokens are those of a
    step, in the mean; ``unit`` is that of the work, which is the same in runs that can be compared.
    """

    begin: float
    seconds: List[float]
    samples: float
    tokens: float
    unit: Optional[str]


class ProcessLog:
    """One file. A line that is not complete yet, or damaged, is no step."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_bytes = 0
        self._rest = b""
        self.steps: List[Step] = []
        self._first = 0  # the number of the first one
        self.processes: Optional[int] = None
        self.unit: Optional[str] = None
        self.has_diverged = self.has_ended = self.lacks_steps = False
        self.peak_bytes: Optional[int] = None
        self.allocator_retries = 0
        self.compile_seconds = 0.0

    def read_new(self) -> None:
        while len(self.steps) < MOST_STEPS:
            block = self._next_block()
            if not block:
                return
            *lines, self._rest = (self._rest + block).split(b"\n")
            for line in lines:
                self._note(line)

    def _next_block(self) -> bytes:
        try:
            with self._path.open("rb") as file:
                file.seek(self._read_bytes)
                block = file.read(BLOCK_BYTES)
        except OSError:
            return b""
        self._read_bytes += len(block)
        return block

    def _note(self, text: bytes) -> None:
        try:
            line = json.loads(text)
            if line["kind"] == "environment":
                self.processes = int(line["world_size"])
                self.unit = line["facts"].get(WORK_UNIT)
            elif line["kind"] == "end":
                self.has_ended = True
            elif line["kind"] == "step" and len(self.steps) < MOST_STEPS:
                self.has_diverged = self.has_diverged or isinstance(line["loss"], str)
                self._first = self._first or int(line.get("step", 1))
                self.steps.append(_step(line))
                self.peak_bytes = line.get("peak_memory_bytes") or self.peak_bytes
            elif line["kind"] == "phase" and line["name"] == COMPILE:
                self.compile_seconds = max(self.compile_seconds, line["end"] - line["begin"])
            elif line["kind"] == "phase" and line["name"] == SETUP:
                self.unit = line["facts"].get(WORK_UNIT, self.unit)  # a script says it until its first step
            elif line["kind"] == "phase" and UNLOGGED_STEPS in line["facts"]:
                self.lacks_steps = bool(line["facts"][UNLOGGED_STEPS])
            elif line["kind"] == "phase" and line["name"] == ALLOCATOR_RETRIES:
                self.allocator_retries = int(line["facts"][RETRIES])
            elif line["kind"] == "phase" and line["name"] == BATCH_SEARCH:
                del self.steps[max(0, int(line["facts"][KEPT_STEPS]) + 1 - self._first) :]
        except (ValueError, KeyError, TypeError, AttributeError):
            return


class RunLogs:
    """``hosts``: each has as many processes of the run as this one. ``earlier``: files of an earlier start of it."""

    def __init__(self, folder: Path, hosts: int, earlier: FrozenSet[Path] = frozenset()) -> None:
        self._folder, self._hosts, self._earlier = folder, hosts, earlier
        self._logs: Dict[Path, ProcessLog] = {}

    def read_new(self) -> None:
        for path in files_of(self._folder) - self._earlier:
            self._logs.setdefault(path, ProcessLog(path)).read_new()

    @property
    def step_count(self) -> int:
        """Steps of the process that is furthest behind."""
        return min((len(log.steps) for log in self._newest()), default=0)

    @property
    def has_ended(self) -> bool:
        """Whether a process has no step left to do."""
        return any(log.has_ended for log in self._newest())

    @property
    def has_diverged(self) -> bool:
        return any(log.has_diverged for log in self._newest())

    @property
    def peak_bytes(self) -> Optional[int]:
        """Peak memory of the process that needed the most."""
        return max((log.peak_bytes for log in self._newest() if log.peak_bytes is not None), default=None)

    @property
    def compile_seconds(self) -> float:
        """The longest compilation of a process."""
        return max((log.compile_seconds for log in self._newest()), default=0.0)

    @property
    def allocator_retries(self) -> int:
        """Retries of the process that had the most."""
        return max((log.allocator_retries for log in self._newest()), default=0)

    def steps(self) -> Optional[Steps]:
        """Steps that every process has ended. None before the first, while the log of a process is missing, and where a
        process trains in steps that it does not log.
        """
        logs, count = self._newest(), self.step_count
        if not count or any(log.processes is None or log.lacks_steps for log in logs):
            return None
        if len(logs) * self._hosts < max(log.processes or 0 for log in logs):
            return None
        ranks = [log.steps[:count] for log in logs]
        return Steps(
            begin=min(steps[0].begin for steps in ranks),
            seconds=[max(step.end - step.begin for step in same) for same in zip(*ranks)],
            samples=self._hosts * sum(step.samples for steps in ranks for step in steps) / count,
            tokens=self._hosts * sum(step.tokens for steps in ranks for step in steps) / count,
            unit=logs[0].unit,
        )

    def _newest(self) -> List[ProcessLog]:
        """Newest log of each process: a service that starts the job again gives a rank a second file."""
        by_rank = {path.name.split(".")[0]: log for path, log in sorted(self._logs.items())}
        return [log for _, log in sorted(by_rank.items())]


def files_of(folder: Path) -> FrozenSet[Path]:
    return frozenset(folder.glob("rank-*.jsonl"))


def work_per_sample(steps: Steps) -> float:
    """Tokens without padding where they are the unit of work: a packed sample has more of them. 0 is unknown."""
    if steps.unit != TOKENS:
        return 1.0
    return steps.tokens / steps.samples if steps.samples else 0.0


def are_alike(first: Steps, second: Steps) -> bool:
    """Whether both count the same work. A log that names no unit counts samples."""
    return first.unit == second.unit


def _step(line: Dict[str, Any]) -> Step:
    return Step(float(line["begin"]), float(line["end"]), float(line["samples"]), float(line["tokens"] or 0))
