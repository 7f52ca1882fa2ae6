"""What the lab expects of jobs, task answers and logs: tests for the doubles and, in tests/local,
the real adapters.
"""

import time
import uuid
from collections.abc import Callable
from typing import Any, Protocol

import pytest

from tests.unit.lab_in_memory import NOW
from tests.unit.run_samples import known
from traindyno.aws.data_listing import DataListing
from traindyno.aws.executions import Executions, ExecutionUnknown
from traindyno.aws.log_tail import LINE_COUNT, LogTail
from traindyno.aws.quotas import Quotas
from traindyno.aws.task_answers import TaskAnswers
from traindyno.aws.training_jobs import TrainingJobs
from traindyno.core.errors import SuiteRefused
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.planning.quotas import (
    QuotaReading,
    UsageSource,
    account_quota,
    instance_quota,
    job_size_quota,
    run_time_quota,
)
from traindyno.core.suite.choices import Purchase
from traindyno.sagemaker.job_description import has_ended, read_job_end

READ_OF_A_JOB = {
    "TrainingJobName",
    "TrainingJobStatus",
    "SecondaryStatus",
    "ResourceConfig",
    "StoppingCondition",
    "AlgorithmSpecification",
    "CreationTime",
    "LastModifiedTime",
    "SecondaryStatusTransitions",
}


SUITE = {"name": "quick-look"}
FIELD = "workload.dataset.path"
CAUSE = "limits.max_usd: too small"


def new_name(what: str) -> str:
    return f"{what}-{uuid.uuid4().hex[:8]}"


def eventually(is_true: Callable[[], bool]) -> None:
    """A double is there at the first look."""
    deadline = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < deadline, "not so within 60 s"
        time.sleep(0.05)


class JobsContract:
    """The contract of training jobs.

    Its fixtures are ``jobs``, ``request`` for a job of a name, and ``end`` of a running job with an
    exit status.
    """

    @pytest.fixture
    def started(self, jobs: TrainingJobs, request_for: Callable[[str], dict[str, Any]]) -> str:
        name = new_name("job")
        jobs.start(request_for(name))
        return name

    def test_a_started_job_works_and_a_repeated_start_makes_no_second_one(
        self, jobs: TrainingJobs, request_for: Callable[[str], dict[str, Any]], started: str
    ) -> None:
        jobs.start(request_for(started))
        job = known(jobs.describe(started))
        assert job.keys() >= READ_OF_A_JOB
        assert (job["TrainingJobName"], job["TrainingJobStatus"], has_ended(job)) == (
            started,
            "InProgress",
            False,
        )
        now = float(getattr(job["CreationTime"], "timestamp", lambda: job["CreationTime"])()) + 60
        ((name, age_seconds),) = jobs.working(started, now=now).items()
        assert name == started
        assert (
            -1 <= age_seconds <= 60
        )  # by SageMaker's clock, in whole seconds, where its answer gives the time
        assert jobs.working(new_name("other"), now=now) == {}

    @pytest.mark.parametrize(
        ("exit_status", "outcome"),
        [(0, Outcome.COMPLETED), (3, Outcome.USER_CODE_ERROR)],
        ids=["completed", "failed"],
    )
    def test_an_ended_job_says_how_and_works_no_more(
        self,
        jobs: TrainingJobs,
        end: Callable[[str, int], None],
        started: str,
        exit_status: int,
        outcome: Outcome,
    ) -> None:
        end(started, exit_status)
        job = known(jobs.describe(started))
        assert has_ended(job)
        ended = read_job_end(job)
        assert (ended.job_name, ended.outcome) == (started, outcome)
        assert ended.billable_seconds is not None
        assert ended.ended_at is not None
        assert ("FailureReason" in job) == (exit_status != 0)
        assert jobs.working(started, now=0) == {}
        assert not jobs.stop(started)

    def test_a_working_job_can_be_stopped(self, jobs: TrainingJobs, started: str) -> None:
        assert jobs.stop(started)
        job = known(jobs.describe(started))
        assert job["TrainingJobStatus"] in {"Stopping", "Stopped"}

    def test_unknown_job_has_no_description_and_nothing_to_stop(self, jobs: TrainingJobs) -> None:
        name = new_name("unknown")
        assert jobs.describe(name) is None
        assert not jobs.stop(name)


class ExecutionsContract:
    """The contract of executions; its fixtures are ``executions`` of a state machine of its own,
    and ``end`` of a running one, with an error and ``CAUSE`` or without.

    No test repeats a start: MiniStack refuses it, and Step Functions accepts it while the execution
    runs.
    """

    @pytest.fixture
    def started(self, executions: Executions) -> str:
        name = new_name("execution")
        executions.start(name, SUITE)
        return name

    def test_a_started_execution_runs(self, executions: Executions, started: str) -> None:
        execution = executions.describe(started)
        assert (execution.execution_id, execution.is_running) == (started, True)
        assert (execution.ended_at, execution.error, execution.cause) == (None, None, None)
        assert list(executions.list_running()) == [started]
        assert [execution.execution_id for execution in executions.list_latest(5)] == [started]

    @pytest.mark.parametrize(
        ("error", "status"),
        [("SuiteRefused", "FAILED"), (None, "SUCCEEDED")],
        ids=["failed", "succeeded"],
    )
    def test_an_ended_execution_says_how_and_runs_no_more(
        self,
        executions: Executions,
        end: Callable[[str, str | None], None],
        started: str,
        error: str | None,
        status: str,
    ) -> None:
        end(started, error)
        eventually(lambda: not executions.describe(started).is_running)
        execution = executions.describe(started)
        assert (execution.status, execution.error, execution.cause) == (
            status,
            error,
            CAUSE if error else None,
        )
        assert execution.ended_at is not None
        assert execution.ended_at >= execution.started_at
        assert list(executions.list_running()) == []

    def test_a_stopped_execution_carries_the_reason(
        self, executions: Executions, started: str
    ) -> None:
        executions.stop(started, reason="stopped by ada")
        execution = executions.describe(started)
        assert (execution.status, execution.error, execution.cause) == (
            "ABORTED",
            "StoppedByUser",
            "stopped by ada",
        )
        assert execution.ended_at is not None
        assert list(executions.list_running()) == []

    def test_the_latest_executions_come_first(self, executions: Executions, started: str) -> None:
        later = new_name("later")
        executions.start(later, SUITE)
        assert [execution.execution_id for execution in executions.list_latest(5)] == [
            later,
            started,
        ]
        assert [execution.execution_id for execution in executions.list_latest(1)] == [later]
        assert set(executions.list_running()) == {started, later}

    def test_an_unknown_execution_has_its_own_error(
        self, executions: Executions, started: str
    ) -> None:
        name = new_name("unknown")
        with pytest.raises(ExecutionUnknown, match=name):
            executions.describe(name)


class AnswersContract:
    """The contract of answers; its fixtures are ``answers``, and ``token`` of a task that waits."""

    def test_a_task_takes_one_answer(self, answers: TaskAnswers, token: str) -> None:
        assert answers.succeed(token, {"run_id": "r"})
        assert not answers.succeed(token, {"run_id": "r"})
        assert not answers.fail(token, error_name="Refused", cause="too late")

    def test_a_failure_is_an_answer_too(self, answers: TaskAnswers, token: str) -> None:
        assert answers.fail(token, error_name="Refused", cause="x" * 5000)
        assert not answers.succeed(token, {})


class QuotasContract:
    """The contract of quotas; its fixture gives the quotas of an account without jobs, with one
    applied value of every quota of instances or, for None, with none.
    """

    @pytest.mark.parametrize("applied", [None, 0, 4])
    def test_a_quota_of_instances_has_its_value_and_its_use(
        self, quotas_of: Callable[[int | None], Quotas], applied: int | None
    ) -> None:
        quotas = (
            *(instance_quota("ml.g5.xlarge", purchase) for purchase in Purchase),
            account_quota(Purchase.ON_DEMAND),
        )
        assert quotas_of(applied).read(quotas, now=NOW) == {
            quota.name: QuotaReading(
                quota=quota,
                applied=applied,
                default=quota.default,
                in_use=0,
                in_use_source=UsageSource.JOBS,
                in_use_as_of=NOW,
                region="us-east-1",
            )
            for quota in quotas
        }

    def test_limits_of_one_job_count_nothing_in_use(
        self, quotas_of: Callable[[int | None], Quotas]
    ) -> None:
        size = job_size_quota(Purchase.ON_DEMAND)
        run_time = run_time_quota()
        assert quotas_of(4).read([size, run_time], now=NOW) == {
            quota.name: QuotaReading(
                quota=quota,
                applied=applied,
                default=quota.default,
                in_use=None,
                region="us-east-1",
            )
            for quota, applied in ((size, 4), (run_time, None))
        }

    def test_an_unlisted_quota_says_so(self, quotas_of: Callable[[int | None], Quotas]) -> None:
        quota = instance_quota("ml.new9.xlarge", Purchase.ON_DEMAND)
        reading = QuotaReading(
            quota=quota,
            applied=None,
            default=None,
            in_use=None,
            is_not_listed=True,
            region="us-east-1",
        )
        assert quotas_of(4).read([quota], now=NOW) == {quota.name: reading}


class ListingContract:
    """The contract of listings; its fixtures are ``listing``, and ``put`` of an object's content by
    its URI in ``bucket``.
    """

    def test_the_digest_is_of_names_and_contents_below_the_prefix(
        self, listing: DataListing, put: Callable[[str, bytes], None], bucket: str
    ) -> None:
        first, copy = (f"s3://{bucket}/{new_name('data')}/" for _ in range(2))
        for prefix in (first, copy):
            put(f"{prefix}train.csv", b"a,1")
            put(f"{prefix}test/part.csv", b"b,2")
        digest, names = listing.content(FIELD, first)
        assert names == {"train.csv", "test/part.csv"}
        assert listing.content(FIELD, copy) == (digest, names)
        changed = f"s3://{bucket}/{new_name('data')}/"
        put(f"{changed}train.csv", b"a,2")
        put(f"{changed}test/part.csv", b"b,2")
        other_digest, same_names = listing.content(FIELD, changed)
        assert other_digest != digest
        assert same_names == names
        put(f"{changed}more.csv", b"c,3")
        assert listing.content(FIELD, changed)[0] == other_digest, "listed once for one suite"

    def test_a_prefix_with_objects_beside_its_folder_names_two(
        self, listing: DataListing, put: Callable[[str, bytes], None], bucket: str
    ) -> None:
        place = f"s3://{bucket}/{new_name('data')}"
        for key in ("train/a.csv", "train/deep/b.csv", "test.csv"):
            put(f"{place}/{key}", b"a,1")
        for uri in (f"{place}/train", f"{place}/train/", f"{place}/test.csv", f"s3://{bucket}"):
            assert listing.siblings(FIELD, uri) is None
        put(f"{place}/train_old/a.csv", b"a,1")
        put(f"{place}/test.csv.bak", b"a,1")
        assert listing.siblings(FIELD, f"{place}/train/") is None
        for name, other in (("train", "train_old/"), ("test.csv", "test.csv.bak")):
            text = str(listing.siblings(FIELD, f"{place}/{name}"))
            assert text.startswith(f"{FIELD}: {place}/{name} also takes {place}/{other}, because")

    def test_a_prefix_without_objects_is_refused(
        self, listing: DataListing, put: Callable[[str, bytes], None], bucket: str
    ) -> None:
        put(f"s3://{bucket}/{new_name('data')}/train.csv", b"a,1")
        uri = f"s3://{bucket}/{new_name('empty')}/"
        with pytest.raises(SuiteRefused, match=f"{FIELD}: {uri} has no objects"):
            listing.content(FIELD, uri)

    def test_a_missing_bucket_is_refused(self, listing: DataListing) -> None:
        uri = f"s3://{new_name('unknown')}/data/"
        with pytest.raises(
            SuiteRefused, match=rf"{FIELD}: the lab can't list {uri} \(NoSuchBucket\)"
        ):
            listing.content(FIELD, uri)


class LogWriter(Protocol):
    def __call__(self, stream: str, lines: list[str], age_seconds: int) -> None: ...


class LogTailContract:
    """The contract of log tails; its fixtures are ``log_tail``, and ``write`` of a stream's lines,
    which are as old as the seconds given.
    """

    def test_the_tail_is_of_the_host_with_the_last_line(
        self, log_tail: LogTail, write: LogWriter
    ) -> None:
        job = new_name("job")
        write(f"{job}/algo-2-1", [f"line {number}" for number in range(LINE_COUNT + 20)], 10)
        write(f"{job}/algo-1-1", ["first to end"], 600)
        write(f"{new_name('other')}/algo-1-1", ["of another job"], 0)
        assert log_tail.read(job) == tuple(
            f"line {number}" for number in range(20, LINE_COUNT + 20)
        )

    def test_a_job_without_output_has_no_tail(self, log_tail: LogTail, write: LogWriter) -> None:
        assert log_tail.read(new_name("silent")) == ()  # there may be no group yet
        write(f"{new_name('other')}/algo-1-1", ["of another job"], 0)
        assert log_tail.read(new_name("silent")) == ()
