"""The sweep: finish jobs whose event was lost, stop those that outlast their execution or its
cap.

Two at once, as after a call by hand, do nothing twice: every write is conditional.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from traindyno.aws.executions import Executions, ExecutionUnknown
from traindyno.aws.training_jobs import TrainingJobs
from traindyno.core.jobs.job import Job
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.lab_names import jobs_prefix
from traindyno.core.planning.admission import needed_reservation_usd
from traindyno.core.suite.job_time import ENDING_SECONDS, MARGIN_SECONDS, STOP_SECONDS
from traindyno.lab.budget import BudgetServices, hold_all, hold_more, time_usd
from traindyno.lab.finish_run import FinishRunServices, finish_run
from traindyno.lab.stop_runs import RequestPace, StopRunsServices, stop_job, stop_jobs, stop_runs
from traindyno.lab.use_case import Failures
from traindyno.sagemaker.job_description import is_ending, running_seconds
from traindyno.store.attempts import AttemptRow, AttemptRows
from traindyno.store.executions import ExecutionRows

# An event takes seconds; of older attempts, the sweep describes those whose jobs have ended.
QUIET_SECONDS = 20
# The sweep runs every five minutes in AWS.
NEXT_LOOK_SECONDS = 300
# DescribeTrainingJob allows five requests per second for the account; FinishRun makes one for each
# job that ends, and jobs start, and so end, at less than one per second.
SECONDS_BETWEEN_LOOKS = 0.3


class ReconcileRunsServices(FinishRunServices, StopRunsServices, BudgetServices, Protocol):
    executions: ExecutionRows
    attempts: AttemptRows
    jobs: TrainingJobs


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """Result of a sweep.

    ``overdue`` counts attempts that had ended and were not finished, without the attempts of shared
    jobs whose end is known: they wait for the next attempt, or for their runs to be recorded.
    ``left`` counts the ended ones for which this sweep had no time. ``failures`` has the errors of
    executions and attempts that the next sweep tries again.
    """

    open: int
    overdue: int
    left: int
    stopped: int
    failures: tuple[Exception, ...] = ()


def sweep(
    *,
    lab: str,
    services: ReconcileRunsServices,
    executions: Executions,
    now: float,
    pace: RequestPace,
    quiet_seconds: float = QUIET_SECONDS,
) -> Swept:
    """Attempts that were submitted less than ``quiet_seconds`` ago are left to their events.

    What fails for one execution or attempt stops no other one. Each sweep takes them in another
    order, so that the end of its time does not leave the same ones each time.
    """
    rows = [row for row in services.attempts.list_open() if now - row.submitted_at > quiet_seconds]
    random.Random(now).shuffle(rows)
    # One listing shows which of them still run, for any number of jobs.
    ages = services.jobs.working(jobs_prefix(lab), now=now) if rows else {}
    stopped = 0
    failures = Failures()
    for name in dict.fromkeys(row.owner.execution_id for row in rows):
        own = [row for row in rows if row.owner.execution_id == name]
        with failures.kept(execution=name):
            if is_over(name, executions):
                stopped += stop_runs(name, services=services, pace=pace)
            elif (
                execution := services.executions.find(name)
            ) is not None and now > execution.latest_end:
                stopped += stop_jobs(name, Outcome.TIMED_OUT, services=services, pace=pace)
            else:
                stopped += stop_overruns(own, ages=ages, services=services, now=now, pace=pace)
    ended = [row for row in rows if row.job_name not in ages]
    done = 0
    for row in ended:
        if not pace.may_go_on():
            break
        with failures.kept(execution=row.owner.execution_id, job=row.job_name):
            finish_run(row.job_name, services=services, now=now)
        done += 1
        pace.sleep(SECONDS_BETWEEN_LOOKS)
    overdue = sum(row.end is None or not isinstance(row.owner, Job) for row in ended)
    return Swept(
        open=len(rows),
        overdue=overdue,
        left=len(ended) - done,
        stopped=stopped,
        failures=tuple(failures.errors),
    )


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
    pace: RequestPace,
) -> int:
    """Reserve more for jobs that exceed their reservation, and stop those for which the cap has no
    room.

    ``rows`` are the open attempts of one execution, ``ages`` the seconds since the creation of the
    jobs that still run. Only jobs old enough to have used up their reservation are described. A job
    that uploads holds what the others leave. Raises the first error after each job was tried.
    """
    stopped = 0
    failures = Failures()
    ending: list[tuple[AttemptRow, float]] = []
    for row in rows:
        age_seconds = ages.get(row.job_name)
        if age_seconds is None or row.end is not None:
            continue
        if (
            not _is_over_limit(row, age_seconds)
            and _usd_at_next_look(row, age_seconds) <= row.reserved_usd
        ):
            continue  # not even if it was billed from its creation on
        if not pace.may_go_on():
            break
        with failures.kept(execution=row.owner.execution_id, job=row.job_name):
            job = services.jobs.describe(row.job_name)
            pace.sleep(SECONDS_BETWEEN_LOOKS)
            # None while nothing is billed yet, and for a job that has ended: FinishRun reads its
            # cost.
            billed_seconds = None if job is None else running_seconds(job, now=now)
            if job is None or billed_seconds is None:
                continue
            if row.stopped_for is not None or is_ending(job):
                ending.append((row, billed_seconds))
                if row.stopped_for is not None and not is_ending(job):
                    # The request was refused, or its function ended before it.
                    stopped += stop_job(row.job_name, row.stopped_for, services=services, pace=pace)
            elif not _holds_overrun(row, billed_seconds, services):
                # SageMaker is probably ending it: the script has two minutes after SIGTERM.
                is_timed_out = billed_seconds <= row.max_job_seconds + STOP_SECONDS + MARGIN_SECONDS
                outcome = Outcome.TIMED_OUT if is_timed_out else Outcome.COST_STOPPED
                stopped += stop_job(row.job_name, outcome, services=services, pace=pace)
    for row, billed_seconds in ending:
        with failures.kept(execution=row.owner.execution_id, job=row.job_name):
            # Nothing ends an upload. One that outlasts its reservation holds all that is left under
            # the cap, so that nothing else starts, and what it has been billed beyond that.
            if _usd_at_next_look(row, billed_seconds) > row.reserved_usd:
                hold_all(row, time_usd(row, billed_seconds), services=services)
    failures.raise_first()
    return stopped


def _is_over_limit(row: AttemptRow, billed_seconds: float) -> bool:
    """SageMaker stops a job at its limit; until then, the reservation is enough."""
    return billed_seconds > row.max_job_seconds + MARGIN_SECONDS


def _holds_overrun(row: AttemptRow, billed_seconds: float, services: ReconcileRunsServices) -> bool:
    """False if the cap has no room for the job until the next sweep can stop it."""
    if not _is_over_limit(row, billed_seconds):
        return True
    needed_usd = needed_reservation_usd(
        billed_seconds=billed_seconds,
        next_look_seconds=NEXT_LOOK_SECONDS,
        ending_seconds=ENDING_SECONDS,
        instance_count=row.instance_count,
        usd_per_hour=row.usd_per_hour,
    )
    return hold_more(row, needed_usd, services=services)


def _usd_at_next_look(row: AttemptRow, billed_seconds: float) -> Decimal:
    return time_usd(row, billed_seconds + NEXT_LOOK_SECONDS)
