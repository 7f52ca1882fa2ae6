"""The services that a lab's functions speak to, bound to the lab's table and bucket."""

from functools import cache, cached_property
from typing import Protocol

from traindyno.aws import clients
from traindyno.aws.log_tail import LogTail
from traindyno.aws.task_answers import TaskAnswers
from traindyno.aws.training_jobs import TrainingJobs
from traindyno.store.attempt_rows import AttemptRows
from traindyno.store.results_bucket import ResultsBucket
from traindyno.store.spending import Spending
from traindyno.store.start_slots import Turns
from traindyno.store.suite_rows import SuiteRows


class LabServices(Protocol):
    @property
    def attempts(self) -> AttemptRows: ...

    @property
    def suites(self) -> SuiteRows: ...

    @property
    def spending(self) -> Spending: ...

    @property
    def turns(self) -> Turns: ...

    @property
    def bucket(self) -> ResultsBucket: ...

    @property
    def jobs(self) -> TrainingJobs: ...

    @property
    def answers(self) -> TaskAnswers: ...

    @property
    def log_tail(self) -> LogTail: ...


class ConnectedLab:
    """Each client is made when it is first used: making SageMaker's alone takes a cold function half a second."""

    def __init__(self, *, table: str, bucket: str) -> None:
        self._table = table
        self._bucket = bucket

    @cached_property
    def attempts(self) -> AttemptRows:
        return AttemptRows(clients.table(self._table))

    @cached_property
    def suites(self) -> SuiteRows:
        return SuiteRows(clients.table(self._table))

    @cached_property
    def spending(self) -> Spending:
        return Spending(clients.table(self._table))

    @cached_property
    def turns(self) -> Turns:
        return Turns(clients.table(self._table))

    @cached_property
    def bucket(self) -> ResultsBucket:
        return ResultsBucket(clients.s3(), self._bucket)

    @cached_property
    def jobs(self) -> TrainingJobs:
        return TrainingJobs(clients.sagemaker())

    @cached_property
    def answers(self) -> TaskAnswers:
        return TaskAnswers(clients.stepfunctions())

    @cached_property
    def log_tail(self) -> LogTail:
        return LogTail(clients.logs())


@cache
def connect(*, table: str, bucket: str) -> ConnectedLab:
    """The same for every call of a warm function."""
    return ConnectedLab(table=table, bucket=bucket)
