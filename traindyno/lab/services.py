"""The services that the lab's use cases name, bound to the lab's table and bucket."""

from functools import cache, cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from traindyno.aws import clients
from traindyno.aws.table import Table
from traindyno.lab.environment import BucketEnvironment
from traindyno.store.results_bucket import ResultsBucket

if TYPE_CHECKING:
    from traindyno.aws.log_tail import LogTail
    from traindyno.aws.task_answers import TaskAnswers
    from traindyno.aws.training_jobs import TrainingJobs
    from traindyno.store.attempts import AttemptRows
    from traindyno.store.executions import ExecutionRows
    from traindyno.store.owners import PreparationRows, RunRows, SharedJobRows
    from traindyno.store.past_runs import WorkIndex
    from traindyno.store.spending import Spending
    from traindyno.store.start_slots import StartSlots


def opened(place: str, client: str | None = None) -> Any:
    """An attribute that makes the class at ``place`` at its first use, on ``client`` or on the
    lab's table.
    """
    module, _, name = place.rpartition(".")

    def make(lab: "LabServices") -> Any:
        return getattr(import_module(f"traindyno.{module}"), name)(
            getattr(clients, client)() if client else lab._table
        )

    return cached_property(make)


class LabServices:
    """Every service of the lab.

    Each is imported and made at its first use, so a function pays for the services that its use
    case names: the client of SageMaker alone takes half a second.
    """

    def __init__(self, *, table: Table, bucket: ResultsBucket) -> None:
        self._table = table
        self.bucket = bucket

    executions: "ExecutionRows" = opened("store.executions.ExecutionRows")
    runs: "RunRows" = opened("store.owners.RunRows")
    shared_jobs: "SharedJobRows" = opened("store.owners.SharedJobRows")
    preparations: "PreparationRows" = opened("store.owners.PreparationRows")
    attempts: "AttemptRows" = opened("store.attempts.AttemptRows")
    spending: "Spending" = opened("store.spending.Spending")
    start_slots: "StartSlots" = opened("store.start_slots.StartSlots")
    work_index: "WorkIndex" = opened("store.past_runs.WorkIndex")
    jobs: "TrainingJobs" = opened("aws.training_jobs.TrainingJobs", "sagemaker")
    answers: "TaskAnswers" = opened("aws.task_answers.TaskAnswers", "stepfunctions")
    log_tail: "LogTail" = opened("aws.log_tail.LogTail", "logs")


def open_services(environment: BucketEnvironment) -> LabServices:
    return LabServices(
        table=Table(clients.table(environment.table)),
        bucket=ResultsBucket(clients.s3(), environment.bucket),
    )


@cache
def connect(environment: BucketEnvironment) -> LabServices:
    """Created once for all calls of a warm function."""
    return open_services(environment)
