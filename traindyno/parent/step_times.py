"""The step logs of one run's processes on this host, read while they grow."""

import json
from math import isfinite
from pathlib import Path
from typing import Dict, FrozenSet, List, NamedTuple, Optional

from traindyno.core.step_log.fields import (
    ProcessLines,
    facts_between_steps,
    facts_of,
    first_batches,
    have_equal_batches,
)
from traindyno.core.step_log.line import (
    ALLOCATOR_RETRIES,
    COMPILE,
    RETRIES,
    TOKENS,
    UNLOGGED_STEPS,
    WORK_UNIT,
    LoggedStep,
)
from traindyno.figures.in_job.outpaced import MOST_STEPS

BLOCK_BYTES = 2**18


class StepsSoFar(NamedTuple):
    """Steps of all processes.

    ``begin`` is when the first step began, in epoch seconds. Samples and tokens are of a step, in
    the mean; ``unit`` is the unit of work, which is the same in runs that can be compared.
    """

    begin: float
    seconds: List[float]
    samples: float
    tokens: float
    unit: Optional[str]


class FirstSteps(List[LoggedStep]):
    def append(self, step: LoggedStep) -> None:
        if len(self) < MOST_STEPS:
            super().append(step)

    def keep_until(self, number: int) -> int:
        self[:] = [step for step in self if step.step <= number]
        return len(self)


class GrowingLog:
    """One file. A line that is not complete yet, or damaged, is left out."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_bytes = 0
        self._rest = b""
        self.steps = FirstSteps()
        self.lines = ProcessLines(self.steps)

    def read_new(self) -> None:
        while len(self.steps) < MOST_STEPS:
            block = self._next_block()
            if not block:
                return
            *lines, self._rest = (self._rest + block).split(b"\n")
            for line in lines:
                try:
                    self.lines.add(json.loads(line))
                except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                    continue

    def _next_block(self) -> bytes:
        try:
            with self._path.open("rb") as file:
                file.seek(self._read_bytes)
                block = file.read(BLOCK_BYTES)
        except OSError:
            return b""
        self._read_bytes += len(block)
        return block

    @property
    def processes(self) -> Optional[int]:
        return self.lines.environment.world_size if self.lines.environment else None

    @property
    def unit(self) -> Optional[str]:
        return facts_of(self.lines.environment, self.lines.phases).get(WORK_UNIT)

    @property
    def lacks_steps(self) -> bool:
        return bool((facts_between_steps(self.lines.phases) or {}).get(UNLOGGED_STEPS))

    @property
    def compile_seconds(self) -> float:
        return max(
            (phase.seconds for phase in self.lines.phases if phase.name == COMPILE), default=0.0
        )

    @property
    def allocator_retries(self) -> int:
        counts = (
            phase.facts.get(RETRIES)
            for phase in self.lines.phases
            if phase.name == ALLOCATOR_RETRIES
        )
        return max((retries for retries in counts if isinstance(retries, int)), default=0)


class RunLogs:
    """Step logs of a run on this host.

    Each of the ``hosts`` has as many processes of the run as this one. ``earlier`` are files of an
    earlier start of the run.
    """

    def __init__(self, folder: Path, hosts: int, earlier: FrozenSet[Path] = frozenset()) -> None:
        self._folder = folder
        self._hosts = hosts
        self._earlier = earlier
        self._logs: Dict[Path, GrowingLog] = {}

    def read_new(self) -> None:
        for path in files_of(self._folder) - self._earlier:
            self._logs.setdefault(path, GrowingLog(path)).read_new()

    @property
    def step_count(self) -> int:
        """Steps of the process that is furthest behind."""
        return min((len(log.steps) for log in self._newest()), default=0)

    @property
    def has_ended(self) -> bool:
        """Whether a process has no step left to do."""
        return any(log.lines.is_ended for log in self._newest())

    @property
    def has_diverged(self) -> bool:
        losses = (step.loss for log in self._newest() for step in log.steps)
        return any(loss is not None and not isfinite(loss) for loss in losses)

    @property
    def peak_bytes(self) -> Optional[int]:
        """Peak memory of the process that needed the most."""
        return (
            max(
                (step.peak_memory_bytes or 0 for log in self._newest() for step in log.steps),
                default=0,
            )
            or None
        )

    @property
    def compile_seconds(self) -> float:
        """The longest compilation of a process."""
        return max((log.compile_seconds for log in self._newest()), default=0.0)

    @property
    def allocator_retries(self) -> int:
        """Retries of the process that had the most."""
        return max((log.allocator_retries for log in self._newest()), default=0)

    @property
    def first_batches(self) -> List[str]:
        """Checksums of the first batches of this host's processes."""
        return first_batches(log.lines for log in self._newest())

    def steps(self) -> Optional[StepsSoFar]:
        """Steps that every process has ended.

        None before the first, while the log of a process is missing, where a process trains in
        steps that it does not log, and where several count the same batches.
        """
        logs = self._newest()
        count = self.step_count
        if not count or any(log.processes is None or log.lacks_steps for log in logs):
            return None
        if len(logs) * self._hosts < max(log.processes or 0 for log in logs):
            return None
        if have_equal_batches([log.lines for log in logs]):
            return None
        ranks = [log.steps[:count] for log in logs]
        return StepsSoFar(
            begin=min(steps[0].begin for steps in ranks),
            seconds=[max(step.end - step.begin for step in same) for same in zip(*ranks)],
            samples=self._hosts * sum(step.samples for steps in ranks for step in steps) / count,
            tokens=self._hosts * sum(step.tokens or 0 for steps in ranks for step in steps) / count,
            unit=logs[0].unit,
        )

    def _newest(self) -> List[GrowingLog]:
        """Newest log of each process: a service that starts the job again gives a rank a second
        file.
        """
        by_rank = {path.name.split(".")[0]: log for path, log in sorted(self._logs.items())}
        return [log for _, log in sorted(by_rank.items())]


def files_of(folder: Path) -> FrozenSet[Path]:
    return frozenset(folder.glob("rank-*.jsonl"))


def work_per_sample(steps: StepsSoFar) -> float:
    """Tokens without padding where they are the unit of work: a packed sample has more of them.

    0 is unknown.
    """
    if steps.unit != TOKENS:
        return 1.0
    return steps.tokens / steps.samples if steps.samples else 0.0


def are_alike(first: StepsSoFar, second: StepsSoFar) -> bool:
    """Whether both count the same work. A log that names no unit counts samples."""
    return first.unit == second.unit
