"""The services that the lab's use cases name, bound to the lab's table and bucket."""

from collections.abc import Callable
from functools import cache, cached_property
from typing import TYPE_CHECKING, TypeVar, cast

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
    from traindyno.store.sweep_lease import SweepLease


Service = TypeVar("Service")


def opened(make: Callable[["LabServices"], Service]) -> Service:
    """An attribute that ``make`` makes at its first use; its type is the service's, as protocols declare it."""
    return cast("Service", cached_property(make))


def _executions(lab: "LabServices") -> "ExecutionRows":
    from traindyno.store.executions import ExecutionRows

    return ExecutionRows(lab._table)


def _runs(lab: "LabServices") -> "RunRows":
    from traindyno.store.owners import RunRows

    return RunRows(lab._table)


def _shared_jobs(lab: "LabServices") -> "SharedJobRows":
    from traindyno.store.owners import SharedJobRows

    return SharedJobRows(lab._table)


def _preparations(lab: "LabServices") -> "PreparationRows":
    from traindyno.store.owners import PreparationRows

    return PreparationRows(lab._table)


def _attempts(lab: "LabServices") -> "AttemptRows":
    from traindyno.store.attempts import AttemptRows

    return AttemptRows(lab._table)


def _spending(lab: "LabServices") -> "Spending":
    from traindyno.store.spending import Spending

    return Spending(lab._table)


def _start_slots(lab: "LabServices") -> "StartSlots":
    from traindyno.store.start_slots import StartSlots

    return StartSlots(lab._table)


def _sweep_lease(lab: "LabServices") -> "SweepLease":
    from traindyno.store.sweep_lease import SweepLease

    return SweepLease(lab._table)


def _work_index(lab: "LabServices") -> "WorkIndex":
    from traindyno.store.past_runs import WorkIndex

    return WorkIndex(lab._table)


def _jobs(_: "LabServices") -> "TrainingJobs":
    from traindyno.aws.training_jobs import TrainingJobs

    return TrainingJobs(clients.sagemaker())


def _answers(_: "LabServices") -> "TaskAnswers":
    from traindyno.aws.task_answers import TaskAnswers

    return TaskAnswers(clients.stepfunctions())


def _log_tail(_: "LabServices") -> "LogTail":
    from traindyno.aws.log_tail import LogTail

    return LogTail(clients.logs())


class LabServices:
    """Every service of the lab. Each is imported and made at its first use, so a function pays for those that its use
    case names: the client of SageMaker alone takes half a second.
    """

    def __init__(self, *, table: Table, bucket: ResultsBucket) -> None:
        self._table, self.bucket = table, bucket

    executions = opened(_executions)
    runs = opened(_runs)
    shared_jobs = opened(_shared_jobs)
    preparations = opened(_preparations)
    attempts = opened(_attempts)
    spending = opened(_spending)
    start_slots = opened(_start_slots)
    sweep_lease = opened(_sweep_lease)
    work_index = opened(_work_index)
    jobs = opened(_jobs)
    answers = opened(_answers)
    log_tail = opened(_log_tail)


def open_services(environment: BucketEnvironment) -> LabServices:
    return LabServices(
        table=Table(clients.table(environment.table)), bucket=ResultsBucket(clients.s3(), environment.bucket)
    )


@cache
def connect(environment: BucketEnvironment) -> LabServices:
    """Created once for all calls of a warm function."""
    return open_services(environment)
