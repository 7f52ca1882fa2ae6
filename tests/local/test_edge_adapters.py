"""The adapters of SageMaker, Step Functions and the logs keep the same contracts as the doubles of
the unit tests.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.local.aws_double import AwsDouble
from tests.local.jobs import client, job_request, stage_script, wait_until
from tests.local.local_lab import LocalLab
from tests.local.running_service import RunningService, start_service
from tests.unit.aws.edge_contracts import (
    CAUSE,
    AnswersContract,
    ExecutionsContract,
    JobsContract,
    ListingContract,
    LogTailContract,
    LogWriter,
    QuotasContract,
    new_name,
)
from traindyno.aws.data_listing import DataListing
from traindyno.aws.executions import Executions
from traindyno.aws.log_tail import JOB_LOG_GROUP, LogTail
from traindyno.aws.quotas import Quotas
from traindyno.aws.task_answers import TaskAnswers
from traindyno.aws.training_jobs import TrainingJobs

WAIT_FOR_EXIT_STATUS = """
import os, pathlib, sys, time
status = pathlib.Path(os.environ["STATUS_FOLDER"], os.environ["TRAINING_JOB_NAME"])
while not status.exists():
    time.sleep(0.05)
sys.exit(int(status.read_text()))
"""
HANDLER = """
import json
def model_fn(folder):
    return "model"
def input_fn(body, content_type):
    return [json.loads(line)["inputs"].split()[1] for line in body.decode().splitlines()]
def predict_fn(words, model):
    return [[{"label": word, "score": 0.9}, {"label": "other", "score": 0.1}] for word in words]
def output_fn(answers, accept):
    return "\\n".join(json.dumps({"predictions": predictions}) for predictions in answers)
"""
NO_AWS = "http://127.0.0.1:9"


class TestQuotas(QuotasContract):
    """The local SageMaker service keeps the contract; it has AWS's table of quotas."""

    @pytest.fixture
    def quotas_of(self, tmp_path: Path) -> Iterator[Callable[[int | None], Quotas]]:
        with ExitStack() as running:

            def quotas_of(applied: int | None) -> Quotas:
                granted = () if applied is None else ("--grant-quotas", str(applied))
                endpoint = running.enter_context(start_service(tmp_path, NO_AWS, *granted)).endpoint
                service_quotas, sagemaker = (
                    client(name, endpoint) for name in ("service-quotas", "sagemaker")
                )
                return Quotas(service_quotas, sagemaker, sleep=no_wait)

            yield quotas_of


@pytest.mark.local
class TestDataListing(ListingContract):
    """MiniStack keeps the contract."""

    @pytest.fixture
    def bucket(self, lab: LocalLab) -> str:
        return lab.deployment().bucket

    @pytest.fixture
    def listing(self, lab: LocalLab) -> DataListing:
        return DataListing(lab.client("s3"))

    @pytest.fixture
    def put(self, lab: LocalLab) -> Callable[[str, bytes], None]:
        def put(uri: str, content: bytes) -> None:
            bucket, _, key = uri.removeprefix("s3://").partition("/")
            lab.client("s3").put_object(Bucket=bucket, Key=key, Body=content)

        return put


class WaitingMachine:
    """A state machine with one task that waits for its answer: an activity."""

    def __init__(self, stepfunctions: Any) -> None:
        self.stepfunctions = stepfunctions
        self._activity = stepfunctions.create_activity(name=new_name("activity"))["activityArn"]
        definition = {
            "StartAt": "Wait",
            "States": {"Wait": {"Type": "Task", "Resource": self._activity, "End": True}},
        }
        self.arn: str = stepfunctions.create_state_machine(
            name=new_name("machine"),
            definition=json.dumps(definition),
            roleArn="arn:aws:iam::000000000000:role/test",
        )["stateMachineArn"]

    def next_token(self) -> str:
        """The token of the execution that has waited longest."""
        return str(self.stepfunctions.get_activity_task(activityArn=self._activity)["taskToken"])


def no_wait(_seconds: float) -> None:
    pass


class TestJobs(JobsContract):
    """The local SageMaker service keeps the contract; its jobs really run."""

    @pytest.fixture
    def jobs(self, aws: AwsDouble, service: RunningService) -> Iterator[TrainingJobs]:
        stage_script(aws, WAIT_FOR_EXIT_STATUS)
        sagemaker = client("sagemaker", service.endpoint)
        yield TrainingJobs(sagemaker)
        for job in sagemaker.list_training_jobs(StatusEquals="InProgress")["TrainingJobSummaries"]:
            sagemaker.stop_training_job(TrainingJobName=job["TrainingJobName"])
            wait_until(sagemaker, job["TrainingJobName"])

    @pytest.fixture
    def request_for(self, tmp_path: Path) -> Callable[[str], dict[str, Any]]:
        return lambda name: job_request(name, Environment={"STATUS_FOLDER": str(tmp_path)})

    @pytest.fixture
    def end(self, service: RunningService, tmp_path: Path) -> Callable[[str, int], None]:
        def end(name: str, exit_status: int) -> None:
            (tmp_path / f"{name}.new").write_text(str(exit_status))
            (tmp_path / f"{name}.new").rename(tmp_path / name)
            wait_until(client("sagemaker", service.endpoint), name)

        return end


@pytest.mark.local
class TestAnswers(AnswersContract):
    """MiniStack keeps the contract.

    The token is of an activity's task, which waits as the lab's own tasks do.
    """

    @pytest.fixture
    def answers(self, lab: LocalLab) -> TaskAnswers:
        return TaskAnswers(lab.client("stepfunctions"))

    @pytest.fixture
    def token(self, lab: LocalLab) -> str:
        waiting = WaitingMachine(lab.client("stepfunctions"))
        Executions(waiting.stepfunctions, waiting.arn).start(new_name("execution"), {})
        return waiting.next_token()


@pytest.mark.local
class TestExecutions(ExecutionsContract):
    """MiniStack keeps the contract."""

    @pytest.fixture
    def machine(self, lab: LocalLab) -> WaitingMachine:
        return WaitingMachine(lab.client("stepfunctions"))

    @pytest.fixture
    def executions(self, machine: WaitingMachine) -> Executions:
        return Executions(machine.stepfunctions, machine.arn)

    @pytest.fixture
    def end(self, machine: WaitingMachine) -> Callable[[str, str | None], None]:
        def end(_name: str, error: str | None) -> None:
            answers = TaskAnswers(machine.stepfunctions)
            token = machine.next_token()
            assert (
                answers.fail(token, error_name=error, cause=CAUSE)
                if error
                else answers.succeed(token, {})
            )

        return end


@pytest.mark.local
class TestLogTail(LogTailContract):
    """MiniStack keeps the contract."""

    @pytest.fixture
    def log_tail(self, lab: LocalLab) -> LogTail:
        return LogTail(lab.client("logs"))

    @pytest.fixture
    def write(self, lab: LocalLab) -> LogWriter:
        logs = lab.client("logs")

        def write(stream: str, lines: list[str], age_seconds: int) -> None:
            with suppress(logs.exceptions.ResourceAlreadyExistsException):
                logs.create_log_group(logGroupName=JOB_LOG_GROUP)
            logs.create_log_stream(logGroupName=JOB_LOG_GROUP, logStreamName=stream)
            at = round((time.time() - age_seconds) * 1000)
            events = [
                {"timestamp": at + number, "message": line} for number, line in enumerate(lines)
            ]
            logs.put_log_events(logGroupName=JOB_LOG_GROUP, logStreamName=stream, logEvents=events)

        return write
