"""What an execution is doing now: its runs, its running jobs, its spending, and the cell that leads
so far.
"""

import itertools
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from traindyno.api.lab_target import LabTarget
from traindyno.api.run_position import Position, ended_in, find_position, list_files
from traindyno.aws import clients
from traindyno.aws.executions import Execution
from traindyno.aws.training_jobs import TrainingJobs
from traindyno.core.jobs.job import AttemptOwner, Job, owner_id, runs_of
from traindyno.core.jobs.job_end import JobPhaseName
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.jobs.run_summary import RunSummary
from traindyno.core.run.tokens import DataPreparation
from traindyno.core.suite.choices import GoalKind
from traindyno.core.suite.goal import Goal
from traindyno.core.suite.suite import Run
from traindyno.figures.estimates import Estimate, estimate
from traindyno.sagemaker.job_description import (
    begun_at,
    read_phase,
    read_wait,
    running_seconds,
)
from traindyno.store.attempts import AttemptRow
from traindyno.store.owners import PreparationRow, PreparationSummary

# The number of running jobs that are described in full: each takes one or two requests.
DESCRIBED_JOBS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningJob:
    """A job under way. None is unknown.

    ``phase`` and ``step`` are the step log's. ``seconds`` count since its first status, or while it
    waits since it was submitted. ``billed_seconds`` are of each instance, so far. ``wait`` is what
    it waits for.
    """

    label: str
    instance: str
    job_phase: JobPhaseName | None
    phase: str | None
    step: int | None
    seconds: float
    billed_seconds: float = 0.0
    wait: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader:
    """The best completed cell so far; ``estimate`` is of the whole workload's cost (USD) or of its
    time (seconds).
    """

    label: str
    is_cost: bool
    estimate: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneCount:
    instance: str
    running: int
    ended: int


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """State of an execution.

    ``ended`` has the summaries by run id; ``ended_in_jobs`` the names of the runs that have ended
    in shared jobs that are not over yet. ``jobs`` are the jobs under way, the first of them in
    full.
    ``preparations`` has the rows by preparation id, ended or not.

    ``max_steps`` is None for a script, which decides itself. A race may end before all planned
    runs. ``trials`` is the highest number of trials of a cell.
    """

    execution: Execution
    runs_planned: int | None
    trials: int | None = None
    is_race: bool = False
    ended: Mapping[str, RunSummary]
    ended_in_jobs: Mapping[str, str] = field(default_factory=dict)
    jobs: tuple[RunningJob, ...]
    preparations: Mapping[str, PreparationRow]
    max_steps: int | None
    spent_usd: Decimal
    max_usd: Decimal | None
    leader: Leader | None
    now: float

    @property
    def elapsed_seconds(self) -> float:
        return (self.execution.ended_at or self.now) - self.execution.started_at

    @property
    def runs_ended(self) -> int:
        return len(self.ended.keys() | self.ended_in_jobs.keys())

    @property
    def left_seconds(self) -> float | None:
        """The time left, if the remaining runs take as long as the earlier ones.

        None before the first run has ended, and after the last one that was planned, because
        nobody knows how many are repeated. Nobody knows how many runs a race needs.
        """
        if (
            self.is_race
            or not self.runs_ended
            or self.runs_planned is None
            or self.runs_ended >= self.runs_planned
        ):
            return None
        return self.elapsed_seconds * (self.runs_planned - self.runs_ended) / self.runs_ended

    @property
    def prepared(self) -> dict[str, PreparationSummary]:
        return {name: row.summary for name, row in self.preparations.items() if row.summary}

    @property
    def preparing(self) -> str | None:
        """What the jobs before the first run do; None if all have ended."""
        return "preparing the data" if len(self.prepared) < len(self.preparations) else None

    @property
    def lanes(self) -> tuple[LaneCount, ...]:
        running = Counter(job.instance for job in self.jobs)
        ended = Counter(summary.instance for summary in self.ended.values())
        names = sorted(running.keys() | ended.keys())
        return tuple(
            LaneCount(instance=name, running=running[name], ended=ended[name]) for name in names
        )

    @property
    def position(self) -> tuple[object, ...]:
        """A value that differs after any progress."""
        jobs = tuple((job.label, job.job_phase, job.phase, job.step, job.wait) for job in self.jobs)
        return len(self.ended), self.runs_ended, len(self.prepared), jobs


def read_state(target: LabTarget, execution_id: str) -> State:
    execution = target.describe(execution_id)
    services = target.services
    planned = services.executions.find(execution_id)
    rows = list(services.runs.list_all(execution_id))
    ended = {row.owner_id: row.summary for row in rows if row.summary}
    attempts = list(services.attempts.list_open(execution_id)) if execution.is_running else []
    shared = {row.owner.job_id: row.owner for row in attempts if isinstance(row.owner, Job)}
    files = {
        owner_id(row.owner): list_files(row, target.results)
        for row in attempts
        if isinstance(row.owner, Job)
    }
    now = time.time()
    numbers = {}
    if shared:
        begun = sum(bool(row.jobs) for row in rows) + len(
            list(services.shared_jobs.list_all(execution_id))
        )
        numbers = job_numbers(attempts, begun=begun, planned=planned.job_count if planned else None)
    return State(
        execution=execution,
        runs_planned=planned.run_count if planned else None,
        trials=planned.trials if planned else None,
        is_race=planned.is_race if planned else False,
        ended=ended,
        ended_in_jobs={
            run_id: told
            for name, job in shared.items()
            for run_id, told in _ended(job, files[name])
        },
        jobs=tuple(_running_jobs(target, attempts, now, numbers, files)) if attempts else (),
        preparations={row.owner_id: row for row in services.preparations.list_all(execution_id)},
        max_steps=planned.max_steps if planned and not planned.is_script else None,
        spent_usd=services.spending.read(execution_id).spent_usd,
        max_usd=planned.max_usd if planned else None,
        leader=find_leader(planned.goal, list(ended.values())) if planned else None,
        now=now,
    )


def _ended(job: Job, files: Sequence[str]) -> Iterator[tuple[str, str]]:
    labels = {run.cell.cell_id: run.cell.label for run in job.runs}
    for run_id in ended_in(job, files):
        # also a further run of a cell, which the job adds itself
        cell_id, _, trial = run_id.rpartition("-t")
        yield run_id, f"{labels[cell_id]}, trial {trial}" if cell_id in labels else run_id


def find_leader(goal: GoalKind, summaries: Sequence[RunSummary]) -> Leader | None:
    """The goal's quantity alone decides: only the verdict considers the goal's limit and equivalent
    cells.
    """
    is_cost = not Goal(kind=goal).is_time
    values: dict[str, list[float]] = {}
    for summary in summaries:
        projected = summary.projected_usd if is_cost else summary.projected_seconds
        if summary.outcome is Outcome.COMPLETED and projected:
            values.setdefault(summary.cell_label or summary.cell_id, []).append(float(projected))
    if not values:
        return None
    estimates = {label: estimate(trials) for label, trials in values.items()}
    label = min(estimates, key=lambda name: estimates[name].mean)
    return Leader(label=label, is_cost=is_cost, estimate=estimates[label])


def job_numbers(
    attempts: Iterable[AttemptRow], *, begun: int, planned: int | None
) -> dict[str, str]:
    """Owner id → ``job 2 of 6``, of the jobs under way; jobs that are over have the lower numbers.

    ``begun`` counts jobs of runs that were ever submitted. A job beyond the planned ones carries
    repeated runs.
    """
    ordered = sorted(attempts, key=lambda row: row.submitted_at)
    owners = list(dict.fromkeys(owner_id(row.owner) for row in ordered if runs_of(row.owner)))
    numbered = enumerate(owners, start=max(begun - len(owners), 0) + 1)
    return {
        owner: f"job {number}"
        if planned is None or number > planned
        else f"job {number} of {planned}"
        for number, owner in numbered
    }


def _running_jobs(
    target: LabTarget,
    attempts: Iterable[AttemptRow],
    now: float,
    numbers: Mapping[str, str],
    files: Mapping[str, Sequence[str]],
) -> Iterator[RunningJob]:
    """Jobs under way.

    Args:
        attempts: Attempts. The ended ones are left out.
        now: Epoch seconds.
        numbers: Number of each run, for labels.
        files: Files of shared jobs. The files of other jobs are listed here.
    """
    jobs = TrainingJobs(clients.sagemaker())
    running = (attempt for attempt in attempts if attempt.end is None)
    for number, attempt in enumerate(running):
        described = jobs.describe(attempt.job_name) if number < DESCRIBED_JOBS else None
        job_phase = read_phase(described) if described else None
        wait = read_wait(described) if described else None
        begun = (None if wait or not described else begun_at(described)) or attempt.submitted_at
        position = Position()
        if job_phase is JobPhaseName.TRAINING:
            owner = owner_id(attempt.owner)
            keys = files[owner] if owner in files else list_files(attempt, target.results)
            position = find_position(attempt, keys, target.results)
        of = attempt.owner
        yield RunningJob(
            label=_label(of, position, numbers),
            instance=of.instance
            if isinstance(of, DataPreparation)
            else runs_of(of)[0].cell.settings.instance,
            job_phase=job_phase,
            phase=position.phase,
            step=position.step,
            seconds=now - begun,
            billed_seconds=(described and running_seconds(described, now=now)) or 0.0,
            wait=wait,
        )


def read_waits(target: LabTarget, execution_id: str) -> list[str]:
    """What the jobs under way wait for. There is nothing if one of them works."""
    jobs = TrainingJobs(clients.sagemaker())
    open_attempts = itertools.islice(
        target.services.attempts.list_open(execution_id), DESCRIBED_JOBS
    )
    described = [jobs.describe(attempt.job_name) for attempt in open_attempts]
    waits = [read_wait(job) if job else None for job in described]
    return [wait for wait in waits if wait] if all(waits) else []


def _label(owner: AttemptOwner, position: Position, numbers: Mapping[str, str]) -> str:
    match owner:
        case DataPreparation():
            return owner.label
        case Run():
            return owner.cell.label
        case Job() if position.place is None:
            return f"{numbers[owner.job_id]}, {len(owner.runs)} runs"
        case Job():
            run = owner.runs[position.place - 1]
            return (
                f"{run.cell.label} ({numbers[owner.job_id]}, run {position.place} of "
                f"{len(owner.runs)})"
            )
