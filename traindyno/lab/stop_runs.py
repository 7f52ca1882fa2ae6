"""Stop the training jobs of an execution that is over."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from traindyno.aws.executions import Executions, ExecutionUnknown
from traindyno.aws.training_jobs import TrainingJobs
from traindyno.core.errors import SuiteInvalid, SuiteRefused, Throttled
from traindyno.core.jobs.outcome import Outcome
from traindyno.lab.use_case import Failures
from traindyno.store.attempts import AttemptRows
from traindyno.store.executions import ExecutionRows
from traindyno.store.start_slots import StartSlots

# StopTrainingJob is limited to one request per second for the account and region.
SECONDS_BETWEEN_STOPS = 1.0


class StopRunsServices(Protocol):
    executions: ExecutionRows
    attempts: AttemptRows
    start_slots: StartSlots
    jobs: TrainingJobs


class FunctionContext(Protocol):
    def get_remaining_time_in_millis(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPace:
    """The remaining time of a function, and its wait between requests that AWS limits."""

    may_go_on: Callable[[], bool]
    sleep: Callable[[float], None]

    @classmethod
    def of(cls, context: FunctionContext, *, last_milliseconds: int) -> "RequestPace":
        return cls(
            may_go_on=lambda: context.get_remaining_time_in_millis() > last_milliseconds,
            sleep=time.sleep,
        )


def was_refused(execution_id: str, executions: Executions) -> bool:
    """Whether the execution ended before any job of it was started, because its suite was wrong or
    was refused.
    """
    try:
        error = executions.describe(execution_id).error
    except ExecutionUnknown:
        return False
    return error in {SuiteInvalid.__name__, SuiteRefused.__name__}


def stop_runs(execution_id: str, *, services: StopRunsServices, pace: RequestPace) -> int:
    """Start no further job of the execution, and stop the jobs that run.

    Returns the number of stopped jobs.
    """
    services.executions.mark_stopping(execution_id)
    return stop_jobs(execution_id, Outcome.STOPPED_BY_USER, services=services, pace=pace)


def free_start_slots(execution_id: str, *, services: StopRunsServices, now: float) -> None:
    """Free the reserved start slots, unless another execution has jobs and may hold some of
    them.
    """
    if all(row.owner.execution_id == execution_id for row in services.attempts.list_open()):
        services.start_slots.free(now=now)


def stop_jobs(
    execution_id: str, outcome: Outcome, *, services: StopRunsServices, pace: RequestPace
) -> int:
    """The number of stopped jobs.

    Their ends arrive as events; the sweep stops those for which no time is left.

    Raises the first error after each job was tried.
    """
    stopped = 0
    failures = Failures()
    for row in services.attempts.list_open(execution_id):
        if not pace.may_go_on():
            break
        if row.end is None:
            with failures.kept(execution=execution_id, job=row.job_name):
                stopped += stop_job(row.job_name, outcome, services=services, pace=pace)
    failures.raise_first()
    return stopped


def stop_job(
    job_name: str, outcome: Outcome, *, services: StopRunsServices, pace: RequestPace
) -> bool:
    """False if the job had ended already."""
    if not services.attempts.note_stop(job_name, outcome):
        return False
    try:
        stopped = services.jobs.stop(job_name)
    except Throttled:
        pace.sleep(2 * SECONDS_BETWEEN_STOPS)
        stopped = services.jobs.stop(job_name)
    pace.sleep(SECONDS_BETWEEN_STOPS)
    return stopped
