"""The doubles that stand for SageMaker, Step Functions and the logs keep the contracts of the
adapters.
"""

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.aws.edge_contracts import (
    CAUSE,
    AnswersContract,
    ExecutionsContract,
    JobsContract,
    ListingContract,
    LogTailContract,
    LogWriter,
    QuotasContract,
)
from tests.unit.lab_in_memory import Answers, MemoryExecutions, MemoryLogs, ScriptedJobs
from tests.unit.planned_lab import FixedQuotas, MemoryBuckets
from traindyno.aws.data_listing import DataListing
from traindyno.aws.log_tail import LogTail
from traindyno.aws.quotas import Quotas


class TestScriptedJobs(JobsContract):
    @pytest.fixture
    def jobs(self) -> ScriptedJobs:
        return ScriptedJobs()

    @pytest.fixture
    def request_for(self) -> Callable[[str], dict[str, Any]]:
        return lambda name: {
            "TrainingJobName": name,
            "ResourceConfig": {"InstanceType": "ml.g5.xlarge", "InstanceCount": 1},
            "StoppingCondition": {"MaxRuntimeInSeconds": 60},
            "AlgorithmSpecification": {"TrainingImage": "image"},
        }

    @pytest.fixture
    def end(self, jobs: ScriptedJobs) -> Callable[[str, int], None]:
        def end(name: str, exit_status: int) -> None:
            reason = f"AlgorithmError: exit code: {exit_status}" if exit_status else ""
            jobs.end(name, "Failed" if exit_status else "Completed", reason=reason)

        return end


class TestMemoryExecutions(ExecutionsContract):
    @pytest.fixture
    def executions(self) -> MemoryExecutions:
        return MemoryExecutions()

    @pytest.fixture
    def end(self, executions: MemoryExecutions) -> Callable[[str, str | None], None]:
        def end(name: str, error: str | None) -> None:
            status = "FAILED" if error else "SUCCEEDED"
            executions.end(name, status, error=error, cause=CAUSE if error else None)

        return end


class TestAnswers(AnswersContract):
    @pytest.fixture
    def answers(self) -> Answers:
        return Answers()

    @pytest.fixture
    def token(self) -> str:
        return uuid.uuid4().hex


class TestFixedQuotas(QuotasContract):
    @pytest.fixture
    def quotas_of(self) -> Callable[[int | None], Quotas]:
        return FixedQuotas


class TestMemoryBuckets(ListingContract):
    @pytest.fixture
    def buckets(self) -> MemoryBuckets:
        return MemoryBuckets()

    @pytest.fixture
    def bucket(self) -> str:
        return "results"

    @pytest.fixture
    def listing(self, buckets: MemoryBuckets) -> DataListing:
        return DataListing(buckets)

    @pytest.fixture
    def put(self, buckets: MemoryBuckets) -> Callable[[str, bytes], None]:
        return buckets.objects.__setitem__


class TestMemoryLogs(LogTailContract):
    @pytest.fixture
    def logs(self) -> MemoryLogs:
        return MemoryLogs()

    @pytest.fixture
    def log_tail(self, logs: MemoryLogs) -> LogTail:
        return LogTail(logs)

    @pytest.fixture
    def write(self, logs: MemoryLogs) -> LogWriter:
        return logs.write
