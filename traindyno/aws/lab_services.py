"""The services that a lab's functions speak to, bound to the lab's table and bucket."""

from dataclasses import dataclass

from traindyno.aws import clients
from traindyno.aws.attempt_rows import AttemptRows
from traindyno.aws.log_tail import LogTail
from traindyno.aws.results_bucket import ResultsBucket
from traindyno.aws.spending import Spending
from traindyno.aws.suite_rows import SuiteRows
from traindyno.aws.task_answers import TaskAnswers
from traindyno.aws.training_jobs import TrainingJobs


@dataclass(frozen=True, slots=True, kw_only=True)
class LabServices:
    attempts: AttemptRows
    suites: SuiteRows
    spending: Spending
    bucket: ResultsBucket
    jobs: TrainingJobs
    answers: TaskAnswers
    log_tail: LogTail


def connect(*, table: str, bucket: str) -> LabServices:
    rows = clients.table(table)
    return LabServices(
        attempts=AttemptRows(rows),
        suites=SuiteRows(rows),
        spending=Spending(rows),
        bucket=ResultsBucket(clients.s3(), bucket),
        jobs=TrainingJobs(clients.sagemaker()),
        answers=TaskAnswers(clients.stepfunctions()),
        log_tail=LogTail(clients.logs()),
    )
