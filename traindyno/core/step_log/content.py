"""A run's step log: what its processes wrote, grouped into sessions (a restart begins another
one).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from traindyno.core.step_log.fields import (
    Environment,
    Evaluation,
    LoggedError,
    ModelSize,
    ProcessLines,
)
from traindyno.core.step_log.steps import Steps

MOST_NAMED = 10


class ProcessLog(ProcessLines):
    """One file: one start of one process."""

    def __init__(self, *, job_name: str, rank: int, start: float) -> None:
        self.job_name = job_name
        self.rank = rank
        self.start = start
        self.steps = Steps()
        super().__init__(self.steps)

    @property
    def launch(self) -> str | None:
        return None if self.environment is None else self.environment.launch

    @property
    def last_logged(self) -> float:
        """When its last step, phase, evaluation or error ended; its start if it logged none."""
        times = [
            self.start,
            *(phase.end for phase in self.phases),
            *(evaluation.time for evaluation in self.evaluations),
        ]
        times += [error.time for error in self.errors]
        times += [step.end for step in self.steps[-1:]]
        return max(times)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The processes that ran together, by rank: from a start to an end or an interruption."""

    job_name: str
    world_size: int
    processes: tuple[ProcessLog, ...]

    @property
    def missing_ranks(self) -> tuple[int, ...]:
        present = {process.rank for process in self.processes}
        return tuple(rank for rank in range(self.world_size) if rank not in present)

    def describe_missing_ranks(self) -> str:
        missing = ", ".join(map(str, self.missing_ranks[:MOST_NAMED])) + ", …" * (
            len(self.missing_ranks) > MOST_NAMED
        )
        return (
            f"job {self.job_name}: no log of rank {missing} (world size {self.world_size}); every "
            "process must log its own steps, because the work of all is counted"
        )

    @property
    def begin(self) -> float:
        return min(process.start for process in self.processes)

    @property
    def first_logged(self) -> float:
        """When the first phase of any rank began: launching and importing are before the process's
        own start.
        """
        return min(
            [self.begin, *(phase.begin for process in self.processes for phase in process.phases)]
        )

    @property
    def evaluations(self) -> Sequence[Evaluation]:
        """The evaluations of the lowest rank that logged any."""
        return next((process.evaluations for process in self.processes if process.evaluations), ())

    @property
    def end_reason(self) -> str | None:
        """Why the lowest rank ended before its last step; None if it did all steps or was cut
        off.
        """
        return self.processes[0].end_reason

    @property
    def end(self) -> float | None:
        """When the last step or phase of any rank ended; None if nothing was logged."""
        ends = [process.steps[-1].end for process in self.processes if process.steps]
        ends += [phase.end for process in self.processes for phase in process.phases]
        return max(ends, default=None)

    @property
    def common_steps(self) -> Sequence[int]:
        """Step numbers that every process of the session finished, in order."""
        numbers = [process.steps.numbers for process in self.processes]
        if not numbers or all(steps == numbers[0] for steps in numbers):
            return numbers[0] if numbers else ()
        common = set(numbers[0])
        for steps in numbers[1:]:
            common.intersection_update(steps)
        return tuple(sorted(common))


@dataclass(frozen=True, kw_only=True)
class StepLog:
    """Everything a run logged.

    ``problems`` lists missing and truncated parts; nothing is repaired silently.
    """

    sessions: tuple[Session, ...]
    problems: tuple[str, ...]

    @cached_property
    def measured(self) -> Session | None:
        """The session with the most steps common to all its ranks; of several, the latest."""
        with_steps = [session for session in self.sessions if session.common_steps]
        return max(
            reversed(with_steps), key=lambda session: len(session.common_steps), default=None
        )

    @property
    def processes(self) -> tuple[ProcessLog, ...]:
        """The processes of all its sessions."""
        return tuple(process for session in self.sessions for process in session.processes)

    @property
    def errors(self) -> tuple[LoggedError, ...]:
        errors = [error for process in self.processes for error in process.errors]
        return tuple(sorted(errors, key=lambda error: error.time))

    @property
    def model(self) -> ModelSize | None:
        return next((process.model for process in self.processes if process.model), None)

    @property
    def environments(self) -> tuple[Environment, ...]:
        """The environments of the last session's processes, by rank."""
        processes = self.sessions[-1].processes if self.sessions else ()
        return tuple(process.environment for process in processes if process.environment)
