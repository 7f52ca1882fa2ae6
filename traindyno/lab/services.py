"""The services that the lab's functions call, bound to the lab's table and bucket."""

from functools import cache, cached_property
from typing import Any

from traindyno.aws import clients
from traindyno.aws.endpoints import Endpoints, Invocations
from traindyno.aws.log_tail import LogTail
from traindyno.aws.table import Table
from traindyno.aws.task_answers import TaskAnswers
from traindyno.aws.training_jobs import TrainingJobs
from traindyno.core.suite.preparation import AttemptOwner, owner_id
from traindyno.core.suite.suite import Run
from traindyno.lab.environment import BucketEnvironment
from traindyno.store.attempts import AttemptRow, AttemptRows
from traindyno.store.executions import ExecutionRows
from traindyno.store.model_deployments import DeploymentRows
from traindyno.store.owners import OwnerRow, OwnerRows, PreparationRows, RunRows
from traindyno.store.results_bucket import ResultsBucket
from traindyno.store.spending import Spending
from traindyno.store.start_slots import StartSlots
from traindyno.store.sweep_lease import SweepLease
from traindyno.store.work_index import WorkIndex


class LabServices:
    """Clients of services are made at first use: SageMaker's alone takes half a second."""

    def __init__(self, *, table: Table, bucket: ResultsBucket) -> None:
        self.executions = ExecutionRows(table)
        self.runs = RunRows(table)
        self.preparations = PreparationRows(table)
        self.attempts = AttemptRows(table)
        self.spending = Spending(table)
        self.start_slots = StartSlots(table)
        self.sweep_lease = SweepLease(table)
        self.work_index = WorkIndex(table)
        self.deployments = DeploymentRows(table)
        self.bucket = bucket

    @cached_property
    def jobs(self) -> TrainingJobs:
        return TrainingJobs(clients.sagemaker())

    @cached_property
    def endpoints(self) -> Endpoints:
        return Endpoints(clients.sagemaker())

    @cached_property
    def invocations(self) -> Invocations:
        return Invocations(clients.sagemaker_runtime())

    @cached_property
    def answers(self) -> TaskAnswers:
        return TaskAnswers(clients.stepfunctions())

    @cached_property
    def log_tail(self) -> LogTail:
        return LogTail(clients.logs())

    def rows_of(self, owner: AttemptOwner) -> OwnerRows[Any]:
        return self.runs if isinstance(owner, Run) else self.preparations

    def row_of(self, owner: AttemptOwner) -> OwnerRow:
        row: OwnerRow = self.rows_of(owner).read(owner.execution_id, owner_id(owner))
        return row

    def attempts_of(self, row: OwnerRow) -> list[AttemptRow]:
        """The attempts in the order of their numbers."""
        found = [attempt for name in row.jobs if (attempt := self.attempts.find(name))]
        return sorted(found, key=lambda attempt: attempt.number)

    def is_stopping(self, execution_id: str) -> bool:
        execution = self.executions.find(execution_id)
        return execution is not None and execution.is_stopping


def open_services(environment: BucketEnvironment) -> LabServices:
    return LabServices(
        table=Table(clients.table(environment.table)), bucket=ResultsBucket(clients.s3(), environment.bucket)
    )


@cache
def connect(environment: BucketEnvironment) -> LabServices:
    """Created once for all calls of a warm function."""
    return open_services(environment)
