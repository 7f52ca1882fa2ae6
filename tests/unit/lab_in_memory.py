"""A lab's services kept in memory, for tests of what the functions do with them; the rows' conditions hold here too."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from tests.unit.suites import small_document
from traindyno.aws.log_tail import LogTail
from traindyno.aws.task_answers import TaskAnswers
from traindyno.aws.training_jobs import TrainingJobs
from traindyno.core.costs.prices import Price
from traindyno.core.documents.stored import to_document
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.jobs.warm_pool import WarmPool
from traindyno.core.s3_keys import suite_key
from traindyno.core.suite.cells import expand_cells
from traindyno.core.suite.runs import trial_runs
from traindyno.core.suite.suite import Run
from traindyno.core.suite.suite_file import parse_suite
from traindyno.lab.services import LabServices
from traindyno.sagemaker.job_settings import JobSettings
from traindyno.store.attempt_rows import AttemptRow, AttemptRows
from traindyno.store.results_bucket import ResultsBucket
from traindyno.store.spending import Spending
from traindyno.store.start_slots import Turns
from traindyno.store.suite_rows import SuiteRows

EXECUTION = "execution-1"
NOW = 1_790_000_000.0
PRICE = Price(
    instance_type="ml.g5.xlarge",
    region="us-east-1",
    usd_per_hour=Decimal("1.20"),
    as_of="2026-11-20",
    source="AWS Price List",
)
SETTINGS = JobSettings(
    region="us-east-1",
    role_arn="arn:aws:iam::111111111111:role/training",
    results_bucket="results",
    source_s3_uri="s3://assets/source.tar.gz",
)


def no_sleep(seconds: float) -> None:
    assert not seconds, "nothing is to be waited for here"


class MemoryAttempts(AttemptRows):
    def __init__(self) -> None:
        self.rows: dict[str, AttemptRow] = {}

    def create(self, row: AttemptRow) -> bool:
        return self.rows.setdefault(row.job_name, row) is row

    def read(self, job_name: str) -> AttemptRow | None:
        return self.rows.get(job_name)

    def hand_over(self, job_name: str, token: str) -> bool:
        return bool(self._change(job_name, token=token))

    def discard(self, job_name: str) -> None:
        del self.rows[job_name]

    def note_stop(self, job_name: str, outcome: Outcome) -> bool:
        return bool(self._change(job_name, stopped_for=outcome))

    def hold(self, job_name: str, reserved_usd: Decimal) -> bool:
        return bool(self._change(job_name, reserved_usd=reserved_usd))

    def record_end(self, end: Attempt) -> AttemptRow | None:
        return self._change(end.job_name, end=end)

    def close(self, job_name: str) -> None:
        self.rows[job_name] = replace(self.rows[job_name], is_open=False)

    def list_open(self, execution_id: str | None = None) -> Iterator[AttemptRow]:
        found = [row for row in self.rows.values() if row.is_open]
        return (row for row in found if execution_id in {None, row.run.execution_id})

    def _change(self, job_name: str, **changes: Any) -> AttemptRow | None:
        row = self.rows.get(job_name)
        if row is None or row.end is not None:
            return None
        self.rows[job_name] = replace(row, **changes)
        return self.rows[job_name]


class MemorySuites(SuiteRows):
    def __init__(self) -> None:
        self.suites: dict[str, dict[str, Any]] = {
            EXECUTION: {"started_at": NOW, "prices": {PRICE.instance_type: to_document(PRICE)}}
        }
        self.runs: dict[str, dict[str, Any]] = {}
        self.works: list[tuple[str, str]] = []
        self.writes = 0

    def create(self, execution_id: str, facts: Mapping[str, Any]) -> None:
        self.suites.setdefault(execution_id, dict(facts))

    def note_work(self, work_id: str, execution_id: str, started_at: float) -> None:
        self.works.append((work_id, execution_id))

    def list_same_work(self, work_id: str, limit: int) -> list[str]:
        return [execution_id for known, execution_id in reversed(self.works) if known == work_id][:limit]

    def read(self, execution_id: str) -> dict[str, Any] | None:
        return self.suites.get(execution_id)

    def update(self, execution_id: str, facts: Mapping[str, Any]) -> None:
        self.suites[execution_id] |= facts

    def mark_stopping(self, execution_id: str) -> None:
        self.suites[execution_id]["stopping"] = True

    def note_job(self, execution_id: str, run_id: str, job_name: str) -> None:
        row = self.runs.setdefault(run_id, {})
        row.setdefault("jobs", set()).add(job_name)
        row.pop("start_at", None)

    def note_turn(self, execution_id: str, run_id: str, start_at: float) -> None:
        self.runs.setdefault(run_id, {})["start_at"] = start_at

    def forget_job(self, execution_id: str, run_id: str, job_name: str) -> None:
        self.runs[run_id]["jobs"].discard(job_name)

    def read_run(self, execution_id: str, run_id: str) -> dict[str, Any]:
        return self.runs.get(run_id, {})

    def list_runs(self, execution_id: str) -> Iterator[dict[str, Any]]:
        return ({"sk": f"run#{run_id}", **row} for run_id, row in self.runs.items())

    def record_run(self, execution_id: str, run_id: str, summary: Mapping[str, Any]) -> bool:
        row = self.runs.setdefault(run_id, {})
        if "outcome" in row:
            return False
        row |= summary
        self.writes += 1
        return True


class MemorySpending(Spending):
    def __init__(self) -> None:
        self.exposed, self.spent = Decimal(0), Decimal(0)
        self.pools: set[str] = set()

    def reserve(self, execution_id: str, usd: Decimal, *, cap_usd: Decimal) -> bool:
        if self.exposed + usd > cap_usd:
            return False
        self.exposed += usd
        return True

    def settle(
        self, execution_id: str, *, reserved_usd: Decimal, spent_usd: Decimal, pool_of: str | None = None
    ) -> None:
        self.exposed += spent_usd - reserved_usd
        self.spent += spent_usd
        self.pools |= {pool_of} if pool_of else set()

    def settle_pool(self, execution_id: str, job_name: str, *, reserved_usd: Decimal, spent_usd: Decimal) -> bool:
        if job_name not in self.pools:
            return False
        self.pools.remove(job_name)
        self.settle(execution_id, reserved_usd=reserved_usd, spent_usd=spent_usd)
        return True

    def unsettled_pools(self, execution_id: str) -> frozenset[str]:
        return frozenset(self.pools)

    def read(self, execution_id: str) -> tuple[Decimal, Decimal]:
        return self.exposed, self.spent


class MemoryTurns(Turns):
    def __init__(self) -> None:
        self.next_at = 0.0

    def take(self, *, now: float, seconds_between: float) -> float:
        at = max(self.next_at, now)
        self.next_at = at + seconds_between
        return at

    def forget(self, *, now: float) -> None:
        self.next_at = now


class MemoryBucket(ResultsBucket):
    def __init__(self) -> None:
        self.name = "results"
        self._fixed = {}
        self.objects: dict[str, bytes] = {}

    def find_json(self, key: str) -> Any | None:
        return json.loads(self.objects[key]) if key in self.objects else None

    def read(self, key: str) -> bytes:
        return self.objects[key]

    def write(self, key: str, content: bytes, content_type: str) -> None:
        self.objects[key] = content

    def list_keys(self, prefix: str) -> Iterator[str]:
        return iter([key for key in self.objects if key.startswith(prefix)])


class ScriptedJobs(TrainingJobs):
    """``refusals`` are raised by the next starts, one each. A started job works until ``end`` says otherwise."""

    def __init__(self) -> None:
        self.requests: list[Mapping[str, Any]] = []
        self.jobs: dict[str, dict[str, Any]] = {}
        self.stopped: list[str] = []
        self.refusals: list[Exception] = []
        self.stop_refusals: list[Exception] = []
        self.pools: list[WarmPool] = []

    def start(self, request: Mapping[str, Any]) -> None:
        self.requests.append(request)
        if self.refusals:
            raise self.refusals.pop(0)
        self.jobs.setdefault(request["TrainingJobName"], _described(request))

    def describe(self, job_name: str) -> dict[str, Any] | None:
        return self.jobs.get(job_name)

    def stop(self, job_name: str) -> bool:
        if self.stop_refusals:
            raise self.stop_refusals.pop(0)
        self.stopped.append(job_name)
        return job_name in self.working("", now=NOW)

    def working(self, name_part: str, *, now: float) -> dict[str, float]:
        return {
            name: now - job["CreationTime"]
            for name, job in self.jobs.items()
            if job["TrainingJobStatus"] == "InProgress"
        }

    def keeping_warm(self, name_part: str) -> list[str]:
        return [pool.job_name for pool in self.warm_pools(name_part) if not pool.is_over]

    def warm_pools(self, name_part: str) -> Iterator[WarmPool]:
        return (pool for pool in list(self.pools) if name_part in pool.job_name)

    def pool_taken_by(self, job_name: str, name_part: str) -> WarmPool | None:
        return next((pool for pool in self.warm_pools(name_part) if pool.reused_by == job_name), None)

    def release_instances(self, job_name: str) -> bool:
        self.pools = [replace(pool, is_over=pool.is_over or pool.job_name == job_name) for pool in self.pools]
        return True

    def end(self, job_name: str, status: str, *, reason: str = "", billable_seconds: int | None = 300) -> None:
        changes: dict[str, Any] = {"TrainingJobStatus": status, "SecondaryStatus": status, "TrainingEndTime": NOW + 400}
        if billable_seconds is not None:
            changes |= {"BillableTimeInSeconds": billable_seconds, "TrainingStartTime": NOW + 60}
        self.jobs[job_name] |= changes | ({"FailureReason": reason} if reason else {})


def _described(request: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "TrainingJobName": request["TrainingJobName"],
        "TrainingJobStatus": "InProgress",
        "SecondaryStatus": "Starting",
        "ResourceConfig": request["ResourceConfig"],
        "StoppingCondition": request["StoppingCondition"],
        "AlgorithmSpecification": request["AlgorithmSpecification"],
        "CreationTime": NOW,
        "LastModifiedTime": NOW,
        "SecondaryStatusTransitions": [],
    }


@dataclass
class Answers(TaskAnswers):
    """``gone`` tokens have nobody waiting."""

    given: list[tuple[str, str, str]] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)

    def succeed(self, token: str, output: Mapping[str, str]) -> bool:
        return self._give(token, "success", json.dumps(output))

    def fail(self, token: str, *, error_name: str, cause: str) -> bool:
        return self._give(token, error_name, cause)

    def _give(self, token: str, name: str, text: str) -> bool:
        if token in self.gone:
            return False
        self.given.append((token, name, text))
        return True


class FixedTail(LogTail):
    def __init__(self) -> None:
        self.lines = ("Traceback", "ValueError: no")

    def read(self, job_name: str) -> tuple[str, ...]:
        return self.lines


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLab:
    """Everything that a test looks at; ``services`` is the same as the functions see it."""

    attempts: MemoryAttempts = field(default_factory=MemoryAttempts)
    suites: MemorySuites = field(default_factory=MemorySuites)
    spending: MemorySpending = field(default_factory=MemorySpending)
    turns: MemoryTurns = field(default_factory=MemoryTurns)
    bucket: MemoryBucket = field(default_factory=MemoryBucket)
    jobs: ScriptedJobs = field(default_factory=ScriptedJobs)
    answers: Answers = field(default_factory=Answers)

    log_tail: FixedTail = field(default_factory=FixedTail)

    @property
    def services(self) -> LabServices:
        return self


def make_lab(**changes: Any) -> tuple[MemoryLab, list[Run]]:
    """A lab that has taken in a small suite, and the suite's runs."""
    document = small_document(**changes)
    suite = parse_suite(document)
    lab = MemoryLab()
    lab.bucket.write_json(suite_key(EXECUTION), document)
    return lab, list(trial_runs(EXECUTION, expand_cells(suite), range(1, suite.measurement.trials + 1)))
