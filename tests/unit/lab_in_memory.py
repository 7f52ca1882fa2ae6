"""A lab kept in memory: the store's own rows over a table and a bucket in memory, and jobs that
tests script.
"""

import copy
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import islice
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.unit.memory_table import MemoryTable
from tests.unit.suites import small_document
from traindyno.aws.executions import RUNNING, Execution, Executions, ExecutionUnknown
from traindyno.aws.log_tail import LogTail
from traindyno.aws.objects import OriginalMissing
from traindyno.aws.task_answers import TaskAnswers
from traindyno.aws.training_jobs import TrainingJobs
from traindyno.core.costs.prices import Price
from traindyno.core.jobs.run_summary import RunSummary
from traindyno.core.s3_keys import suite_key
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.choices import GoalKind
from traindyno.core.suite.runs import trial_runs
from traindyno.core.suite.suite import Run
from traindyno.core.suite.suite_file import stored_suite
from traindyno.lab.services import LabServices
from traindyno.lab.stop_runs import RequestPace
from traindyno.sagemaker.job_settings import JobSettings
from traindyno.store.attempts import AttemptRow
from traindyno.store.executions import ExecutionRow
from traindyno.store.items import attribute
from traindyno.store.owners import RunRow
from traindyno.store.results_bucket import ResultsBucket
from traindyno.store.spending import SpendingRow

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


PLANNED = ExecutionRow(
    execution_id=EXECUTION,
    suite_name="quick-look",
    started_at=NOW,
    latest_end=NOW + 1_000_000,
    run_count=4,
    job_count=4,
    goal=GoalKind.CHEAPEST,
    max_usd=Decimal(100),
    max_steps=200,
    trials=3,
    source_s3_uri="s3://results/code/execution-1/sourcedir.tar.gz",
    prices={PRICE.instance_type: PRICE},
)
UNHURRIED = RequestPace(may_go_on=lambda: True, sleep=lambda _: None)


def no_sleep(seconds: float) -> None:
    assert not seconds, "nothing is to be waited for here"


class Unhurried:
    """A function's context."""

    def get_remaining_time_in_millis(self) -> int:
        return 900_000


def set_environment(patch: pytest.MonkeyPatch, **changes: str) -> None:
    """The variables of all functions."""
    settings = {
        **{
            "LAB": "traindyno",
            "BUCKET": "results",
            "TABLE": "rows",
            "AWS_REGION": "us-east-1",
            "LAB_JOBS": "{}",
        },
        **{"TRAINING_ROLE_ARN": SETTINGS.role_arn, "SOURCE_S3_URI": str(SETTINGS.source_s3_uri)},
        **{
            "SECONDS_BETWEEN_STARTS": "1.05",
            "TOPIC_ARN": "arn:aws:sns:us-east-1:111111111111:verdicts",
        },
        **{
            "STATE_MACHINE_ARN": "arn:aws:states:us-east-1:111111111111:"
            "stateMachine:traindyno-suites"
        },
    }
    for name, value in {**settings, **changes}.items():
        patch.setenv(name, value)


class MemoryObjects(ResultsBucket):
    def __init__(self) -> None:
        self.name = "results"
        self.contents: dict[str, bytes] = {}
        self.reads = Counter[str]()
        self.writes = Counter[str]()

    def find(self, key: str, *, last_bytes: int | None = None) -> bytes | None:
        self.reads[key] += 1
        content = self.contents.get(key)
        return content[-last_bytes:] if content and last_bytes else content

    def find_part(self, key: str, first_byte: int, count: int) -> bytes | None:
        content = self.contents.get(key)
        return content[first_byte : first_byte + count] if content else content

    def write(self, key: str, content: bytes, content_type: str) -> None:
        self.contents[key] = content
        self.writes[key] += 1

    def copy(self, source_s3_uri: str, key: str) -> str:
        """Objects of other buckets are not kept: their URI stands for what they hold."""
        own = f"s3://{self.name}/"
        is_own = source_s3_uri.startswith(own)
        if is_own and source_s3_uri.removeprefix(own) not in self.contents:
            raise OriginalMissing(source_s3_uri)
        content = self.contents[source_s3_uri.removeprefix(own)] if is_own else b""
        self.write(key, content or source_s3_uri.encode(), "")
        return f"{own}{key}"

    def copy_large(self, key: str, target_key: str) -> bool:
        if key in self.contents:
            self.write(target_key, self.contents[key], "")
        return key in self.contents

    def renew(self, prefix: str, *, before: float) -> None:
        for key in self.list_keys(prefix):
            self.write(key, self.contents[key], "")

    def delete(self, key: str) -> None:
        self.contents.pop(key, None)

    def has_changed(self, prefix: str, *, since: float, besides: str) -> bool:
        return any(key.startswith(prefix) and not key.startswith(besides) for key in self.contents)

    def list_sizes(self, prefix: str) -> Iterator[tuple[str, int]]:
        return iter(
            sorted(
                (key, len(content))
                for key, content in self.contents.items()
                if key.startswith(prefix)
            )
        )


class ScriptedJobs(TrainingJobs):
    """Jobs whose next starts raise the refusals, one each.

    A started job works until ``end`` says otherwise.
    """

    def __init__(self) -> None:
        self.requests: list[Mapping[str, Any]] = []
        self.jobs: dict[str, dict[str, Any]] = {}
        self.stopped: list[str] = []
        self.refusals: list[Exception] = []
        self.stop_refusals: list[Exception] = []

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
        if job_name not in self.working(job_name, now=NOW):
            return False
        self.jobs[job_name]["TrainingJobStatus"] = "Stopping"
        return True

    def working(self, name_part: str, *, now: float) -> dict[str, float]:
        return {
            name: now - job["CreationTime"]
            for name, job in self.jobs.items()
            if name_part in name and job["TrainingJobStatus"] in {"InProgress", "Stopping"}
        }

    def end(
        self,
        job_name: str,
        status: str,
        *,
        reason: str = "",
        billable_seconds: int | None = 300,
        secondary: str | None = None,
    ) -> None:
        changes: dict[str, Any] = {
            "TrainingJobStatus": status,
            "SecondaryStatus": secondary or status,
            "TrainingEndTime": NOW + 400,
        }
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
        "Tags": request.get("Tags", []),
        "CreationTime": NOW,
        "LastModifiedTime": NOW,
        "SecondaryStatusTransitions": [],
    }


@dataclass
class Answers(TaskAnswers):
    """Answers to tasks; the tokens in ``gone`` are of tasks that wait no more, an answered one
    among them.
    """

    given: list[tuple[str, str, str]] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)

    def succeed(self, token: str, output: Mapping[str, str]) -> bool:
        return self._give(token, "success", json.dumps(output))

    def fail(self, token: str, *, error_name: str, cause: str) -> bool:
        return self._give(token, error_name, cause)

    def _give(self, token: str, name: str, text: str) -> bool:
        if token in self.gone:
            return False
        self.gone.add(token)
        self.given.append((token, name, text))
        return True


class MemoryExecutions(Executions):
    """A started execution runs until ``end`` says otherwise; each starts a second after the one
    before.
    """

    def __init__(self) -> None:
        self._executions: dict[str, Execution] = {}

    def start(self, execution_id: str, suite: Mapping[str, Any]) -> None:
        assert execution_id not in self._executions, "no contract says what a repeated start does"
        self._executions[execution_id] = Execution(
            execution_id=execution_id,
            status=RUNNING,
            started_at=NOW + len(self._executions),
            ended_at=None,
            error=None,
            cause=None,
        )

    def describe(self, execution_id: str) -> Execution:
        if execution_id not in self._executions:
            raise ExecutionUnknown(f"no execution {execution_id}")
        return self._executions[execution_id]

    def list_latest(self, count: int) -> Iterator[Execution]:
        return islice(reversed(self._executions.values()), count)

    def list_running(self) -> Iterator[str]:
        return (
            execution.execution_id
            for execution in self._executions.values()
            if execution.is_running
        )

    def stop(self, execution_id: str, *, reason: str) -> None:
        self.end(execution_id, "ABORTED", error="StoppedByUser", cause=reason)

    def end(
        self, execution_id: str, status: str, *, error: str | None = None, cause: str | None = None
    ) -> None:
        running = self._executions[execution_id]
        self._executions[execution_id] = replace(
            running, status=status, ended_at=running.started_at + 100, error=error, cause=cause
        )


class MemoryLogs:
    """The two calls of CloudWatch Logs' client that ``LogTail`` makes.

    A group or stream without lines is not there.
    """

    def __init__(self) -> None:
        self.streams: dict[str, list[dict[str, Any]]] = {}

    def write(self, stream: str, lines: Sequence[str], age_seconds: int) -> None:
        at = round((NOW - age_seconds) * 1000)
        self.streams[stream] = [
            {"timestamp": at + number, "message": line} for number, line in enumerate(lines)
        ]

    def describe_log_streams(self, **arguments: Any) -> dict[str, Any]:
        if not self.streams:
            raise ClientError(
                {"Error": {"Code": "ResourceNotFoundException"}}, "DescribeLogStreams"
            )
        return {
            "logStreams": [
                {"logStreamName": name, "lastEventTimestamp": events[-1]["timestamp"]}
                for name, events in sorted(self.streams.items())
                if name.startswith(arguments["logStreamNamePrefix"])
            ]
        }

    def get_log_events(self, **arguments: Any) -> dict[str, Any]:
        assert not arguments["startFromHead"]
        return {"events": self.streams[arguments["logStreamName"]][-arguments["limit"] :]}


class MemoryLab(LabServices):
    """The lab as its functions see it, and views of what it keeps for tests to look at."""

    jobs: ScriptedJobs
    answers: Answers
    log_tail: LogTail

    def __init__(self, **planned: Any) -> None:
        """Plans an execution with these fields of its row."""
        self.table = MemoryTable()
        self.objects = MemoryObjects()
        self.logs = MemoryLogs()
        super().__init__(table=self.table, bucket=self.objects)
        self.jobs = ScriptedJobs()
        self.answers = Answers()
        self.log_tail = LogTail(self.logs)
        self.plan(**planned)

    @property
    def services(self) -> LabServices:
        return self

    def plan(self, **changes: Any) -> ExecutionRow:
        """Make the execution's row anew, as PlanSuite would have written it."""
        row = replace(self.executions.find(EXECUTION) or PLANNED, **changes)
        kept = self.table.items.get(("execution#" + EXECUTION, "suite"), {})
        self.table.items["execution#" + EXECUTION, "suite"] = {**kept, **row.to_item()}
        return row

    @property
    def money(self) -> SpendingRow:
        return self.spending.read(EXECUTION)

    @property
    def run_rows(self) -> dict[str, RunRow]:
        return {row.owner_id: row for row in self.runs.list_all(EXECUTION)}

    def summary(self, run_id: str) -> RunSummary:
        summary = self.run_rows[run_id].summary
        assert summary is not None, f"{run_id} is not over"
        return summary

    def run_of(self, job_name: str) -> Run:
        owner = self.attempt(job_name).owner
        assert isinstance(owner, Run)
        return owner

    @property
    def attempt_rows(self) -> dict[str, AttemptRow]:
        """Rows by job name, in the order of their creation; ended and closed ones too."""
        return {
            item["pk"].removeprefix("job#"): AttemptRow.from_item(item)
            for item in self.table.items.values()
            if item["sk"] == "attempt"
        }

    def attempt(self, job_name: str) -> AttemptRow:
        return self.attempt_rows[job_name]

    def change_attempt(self, job_name: str, **changes: Any) -> None:
        row = replace(self.attempt(job_name), **changes)
        self.table.items[f"job#{job_name}", "attempt"] = row.to_item()

    @property
    def next_start(self) -> float:
        return float(self.table.items["start-slots#CreateTrainingJob", "lab"]["next_at"])

    @next_start.setter
    def next_start(self, at: float) -> None:
        self.start_slots.free(now=at)

    def expose(self, usd: Decimal) -> None:
        """Other jobs have reserved this much."""
        self.table.items["execution#" + EXECUTION, "suite"]["exposed_usd"] = attribute(usd)


def like(other: MemoryLab) -> MemoryLab:
    lab = MemoryLab()
    lab.objects.contents.update(other.objects.contents)
    lab.table.items.update(copy.deepcopy(other.table.items))
    return lab


def make_lab(**changes: Any) -> tuple[MemoryLab, list[Run]]:
    """A lab that has taken in a small suite, and the suite's runs."""
    document = small_document(**changes)
    suite = parse_suite(
        {**document, "measurement": {"jobs": "separate", **document.get("measurement", {})}}
    )
    lab = MemoryLab(max_usd=suite.limits.max_usd, max_steps=suite.measurement.max_steps)
    lab.bucket.write_json(suite_key(EXECUTION), stored_suite(suite))
    return lab, list(trial_runs(EXECUTION, suite.cells, range(1, suite.measurement.trials + 1)))
