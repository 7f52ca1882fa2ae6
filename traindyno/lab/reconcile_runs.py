"""The sweep: finish jobs whose event was lost, and stop jobs that outlast their execution, its hours or its cap."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from traindyno.aws.executions import Executions, ExecutionUnknown
from traindyno.aws.training_jobs import TrainingJobs
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.lab_names import jobs_prefix
from traindyno.core.planning.admission import needed_reservation_usd
from traindyno.lab.budget import BudgetServices, hold_more
from traindyno.lab.finish_run import FinishRunServices, finish_run
from traindyno.lab.stop_runs import Pace, StopRunsServices, stop_job, stop_jobs, stop_runs
from traindyno.sagemaker.job_description import running_seconds
from traindyno.store.attempts import AttemptRow, AttemptRows
from traindyno.store.executions import ExecutionRows

# An event takes seconds; of older attempts, the sweep describes those whose jobs have ended.
QUIET_SECONDS = 20
# The sweep runs every five minutes in AWS.
NEXT_LOOK_SECONDS = 300
# DescribeTrainingJob allows five requests per second for the account; FinishRun makes one for each job that ends, and
# jobs start, and so end, at less than one per second.
SECONDS_BETWEEN_LOOKS = 0.3


class ReconcileRunsServices(FinishRunServices, StopRunsServices, BudgetServices, Protocol):
    executions: ExecutionRows
    attempts: AttemptRows
    jobs: TrainingJobs


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """``overdue``: attempts that had ended and were not finished; ``left``: those that are still not finished after
    this sweep.
    """

    open: int
    overdue: int
    left: int
    stopped: int


def sweep(
    *,
    lab: str,
    services: ReconcileRunsServices,
    executions: Executions,
    now: float,
    pace: Pace,
    quiet_seconds: float = QUIET_SECONDS,
) -> Swept:
    """Attempts that were submitted less than ``quiet_seconds`` ago are left to their events."""
    rows = [row for row in services.attempts.list_open() if now - row.submitted_at > quiet_seconds]
    # One listing shows which of them still run, for any number of jobs.
    ages = services.jobs.working(jobs_prefix(lab), now=now) if rows else {}
    stopped = 0
    for name in sorted({row.owner.execution_id for row in rows}):
        own = [row for row in rows if row.owner.execution_id == name]
        stopped += _stop_execution(name, own, ages=ages, services=services, executions=executions, now=now, pace=pace)
    overdue = [row for row in rows if row.job_name not in ages]
    done = 0
    for row in overdue:
        if not pace.may_go_on():
            break
        finish_run(row.job_name, lab=lab, services=services, now=now)
        done += 1
        pace.sleep(SECONDS_BETWEEN_LOOKS)
    return Swept(open=len(rows), overdue=len(overdue), left=len(overdue) - done, stopped=stopped)


def _stop_execution(
    execution_id: str,
    rows: Sequence[AttemptRow],
    *,
    ages: Mapping[str, float],
    services: ReconcileRunsServices,
    executions: Executions,
    now: float,
    pace: Pace,
) -> int:
    """The number of jobs that were stopped."""
    if is_over(execution_id, executions):
        return stop_runs(execution_id, services=services, pace=pace)
    row = services.executions.find(execution_id)
    if row is not None and now > row.latest_end:
        return stop_jobs(execution_id, Outcome.TIMED_OUT, services=services, pace=pace)
    return stop_overruns(rows, ages=ages, services=services, now=now, pace=pace)


def is_over(execution_id: str, executions: Executions) -> bool:
    try:
        return not executions.describe(execution_id).is_running
    except ExecutionUnknown:
        return True  # Step Functions forgets ended executions only


def stop_overruns(
    rows: Sequence[AttemptRow],
    *,
    ages: Mapping[str, float],
    services: ReconcileRunsServices,
    now: float,
    pace: Pace,
) -> int:
    """Reserve more for jobs that exceed their reservation, and stop those for which the cap has no room.

    ``rows`` are the open attempts of one execution, ``ages`` the seconds since the creation of the jobs that still
    run. Only jobs old enough to have used up their reservation are described.
    """
    stopped = 0
    for row in rows:
        age_seconds = ages.get(row.job_name)
        if age_seconds is None or not _may_overrun(row, age_seconds):
            continue
        if not pace.may_go_on():
            break
        billed_seconds = _billed_seconds(row, services, now)
        pace.sleep(SECONDS_BETWEEN_LOOKS)
        needed_usd = None if billed_seconds is None else _needed_usd(row, billed_seconds)
        if needed_usd is not None and not hold_more(row, needed_usd, services=services):
            stopped += stop_job(row.job_name, Outcome.COST_STOPPED, services=services, pace=pace)
    return stopped


def _may_overrun(row: AttemptRow, age_seconds: float) -> bool:
    """Whether the job could exceed its reservation, if it was billed from its creation on."""
    return row.end is None and row.stopped_for is None and _needed_usd(row, age_seconds) > row.reserved_usd


def _needed_usd(row: AttemptRow, billed_seconds: float) -> Decimal:
    """The cost until the next sweep, or until the job's time limit, at which SageMaker stops it."""
    left_seconds = row.max_job_seconds - billed_seconds
    return needed_reservation_usd(
        billed_seconds=billed_seconds + row.keep_warm_seconds,
        next_look_seconds=left_seconds if 0 < left_seconds < NEXT_LOOK_SECONDS else NEXT_LOOK_SECONDS,
        instance_count=row.instance_count,
        usd_per_hour=row.usd_per_hour,
    )


def _billed_seconds(row: AttemptRow, services: ReconcileRunsServices, now: float) -> float | None:
    """None while nothing is billed yet, and for a job that has ended: FinishRun reads its cost."""
    job = services.jobs.describe(row.job_name)
    return None if job is None else running_seconds(job, now=now)
