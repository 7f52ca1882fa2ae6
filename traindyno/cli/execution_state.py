"""What an execution is doing now: its runs, its running jobs, its spending, and the cell that leads so far."""

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from botocore.exceptions import ClientError

from traindyno.aws import clients
from traindyno.aws.executions import Execution
from traindyno.aws.training_jobs import TrainingJobs
from traindyno.cli.target import Target
from traindyno.core.jobs.job_end import JobPhaseName
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.statistics import Estimate, estimate, pool_spread
from traindyno.core.s3_keys import step_log_prefix
from traindyno.core.suite.preparation import RUN_ID_PREFIX
from traindyno.core.suite.suite import GoalKind
from traindyno.sagemaker.job_description import read_phase
from traindyno.store.attempt_rows import AttemptRow

# Of the running jobs, so many are described in full: each takes a request or two.
DESCRIBED_JOBS = 3
STEP_LOG_TAIL_BYTES = 4096
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningJob:
    """``phase`` and ``step`` are the step log's. None is unknown."""

    label: str
    instance: str
    job_phase: JobPhaseName | None
    phase: str | None
    step: int | None
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader:
    """The best completed cell so far; ``estimate`` is of the whole workload's cost (USD) or of its time (seconds)."""

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
    """``ended`` are run rows with an outcome by run id; ``jobs`` are the jobs under way, the first of them in full.

    ``preparations`` are the rows of jobs that prepare the data, ended or not; they are not runs.
    """

    execution: Execution
    runs_total: int | None
    ended: Mapping[str, Row]
    jobs: tuple[RunningJob, ...]
    preparations: Mapping[str, Row]
    max_steps: int | None
    spent_usd: Decimal
    max_usd: Decimal | None
    leader: Leader | None
    now: float

    @property
    def elapsed_seconds(self) -> float:
        return (self.execution.ended_at or self.now) - self.execution.started_at

    @property
    def left_seconds(self) -> float | None:
        """At the rate until now; None before the first run has ended."""
        if not self.ended or self.runs_total is None:
            return None
        return self.elapsed_seconds * (self.runs_total - len(self.ended)) / len(self.ended)

    @property
    def prepared(self) -> dict[str, Row]:
        return {run_id: row for run_id, row in self.preparations.items() if "outcome" in row}

    @property
    def is_preparing(self) -> bool:
        return len(self.prepared) < len(self.preparations)

    @property
    def lanes(self) -> tuple[LaneCount, ...]:
        running = Counter(job.instance for job in self.jobs)
        ended = Counter(str(row.get("instance")) for row in self.ended.values())
        names = sorted(running.keys() | ended.keys())
        return tuple(LaneCount(instance=name, running=running[name], ended=ended[name]) for name in names)

    @property
    def position(self) -> tuple[object, ...]:
        """What changes when anything moves."""
        jobs = tuple((job.label, job.job_phase, job.phase, job.step) for job in self.jobs)
        return len(self.ended), len(self.prepared), jobs


def read_state(target: Target, execution_id: str) -> State:
    execution = target.executions.describe(execution_id)
    suite = target.suites.read(execution_id) or {}
    rows = {row["sk"].removeprefix("run#"): row for row in target.suites.list_runs(execution_id)}
    preparations = {run_id: row for run_id, row in rows.items() if run_id.startswith(RUN_ID_PREFIX)}
    runs = {run_id: row for run_id, row in rows.items() if run_id not in preparations}
    ended = {run_id: row for run_id, row in runs.items() if "outcome" in row}
    now = time.time()
    return State(
        execution=execution,
        runs_total=_integer(suite.get("run_count")),
        ended=ended,
        jobs=tuple(_running_jobs(target, execution_id, now)) if execution.is_running else (),
        preparations=preparations,
        max_steps=_integer(suite.get("max_steps")),
        spent_usd=Decimal(suite.get("spent_usd", 0)),
        max_usd=Decimal(suite["max_usd"]) if "max_usd" in suite else None,
        leader=find_leader(suite.get("goal"), list(ended.values())),
        now=now,
    )


def find_leader(goal: str | None, rows: Sequence[Row]) -> Leader | None:
    """By the quantity of the suite's goal alone: limits of the goal and equals are the verdict's matter."""
    is_cost = goal not in {GoalKind.FASTEST, GoalKind.FASTEST_WITHIN}
    column = "projected_usd" if is_cost else "projected_seconds"
    values: dict[str, list[float]] = {}
    for row in rows:
        if row["outcome"] == Outcome.COMPLETED and row.get(column):
            values.setdefault(str(row.get("cell_label") or row["cell_id"]), []).append(float(row[column]))
    if not values:
        return None
    pooled = pool_spread(list(values.values()))
    estimates = {label: estimate(trials, pooled=pooled) for label, trials in values.items()}
    label = min(estimates, key=lambda name: estimates[name].mean)
    return Leader(label=label, is_cost=is_cost, estimate=estimates[label])


def _running_jobs(target: Target, execution_id: str, now: float) -> Iterator[RunningJob]:
    jobs = TrainingJobs(clients.sagemaker())
    for number, attempt in enumerate(target.attempts.list_open(execution_id)):
        described = jobs.describe(attempt.job_name) if number < DESCRIBED_JOBS else None
        job_phase = read_phase(described) if described else None
        phase, step = _read_step_log(target, attempt) if job_phase is JobPhaseName.TRAINING else (None, None)
        yield RunningJob(
            label="data preparation" if attempt.run.is_preparation else attempt.run.cell.label,
            instance=attempt.run.cell.settings.instance,
            job_phase=job_phase,
            phase=phase,
            step=step,
            seconds=now - attempt.submitted_at,
        )


def _read_step_log(target: Target, attempt: AttemptRow) -> tuple[str | None, int | None]:
    """The latest phase and step that the job has logged and that have reached S3."""
    prefix = step_log_prefix(attempt.run.execution_id, attempt.run.run_id, attempt.job_name)
    try:
        keys = [key for key in target.results.list_keys(prefix) if "/rank-00000." in key]
        text = target.results.read_tail(keys[-1], STEP_LOG_TAIL_BYTES) if keys else ""
    except ClientError:
        return None, None  # the object was replaced meanwhile: the next look finds it
    return latest_position(text)


def latest_position(text: str) -> tuple[str | None, int | None]:
    """Phase and step of the last whole lines of a step log; training has the phase None."""
    for line in reversed(text.splitlines()):
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # cut off at either end
        if entry.get("kind") == "step":
            return None, int(entry["step"])
        if entry.get("kind") in {"phase", "begin"}:
            return str(entry["name"]), None
    return None, None


def _integer(value: Any) -> int | None:
    return None if value is None else int(value)
