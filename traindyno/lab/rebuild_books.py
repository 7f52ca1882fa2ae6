"""The local cloud has lost rows: write attempts and spending again from the jobs that SageMaker knows, and settle them.

On AWS no row is lost. The local cloud's MiniStack loses the rows of its last seconds if it is killed, and its
executions end with it, so nobody starts further jobs of them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from traindyno.aws.executions import Executions
from traindyno.aws.training_jobs import TrainingJobs
from traindyno.core.jobs.job import owner_id
from traindyno.core.jobs.job_end import WarmPool
from traindyno.core.lab_names import jobs_prefix
from traindyno.lab.attempt_owners import rows_of
from traindyno.lab.budget import money_of
from traindyno.lab.finish_run import NEVER_STARTED_SECONDS, finish_run, record_job_end
from traindyno.lab.lost_attempts import LostAttemptServices, restore_attempts
from traindyno.lab.reconcile_runs import ReconcileRunsServices, is_over, sweep
from traindyno.lab.stop_runs import Pace
from traindyno.lab.warm_pools import read_warm_pools, release_warm_pools
from traindyno.store.attempts import AttemptRow, AttemptRows
from traindyno.store.executions import ExecutionRows
from traindyno.store.owners import OwnerRows, PreparationRows, RunRows, SharedJobRows
from traindyno.store.spending import Spending

# A job that is stopped may take two minutes; its end then arrives as an event.
STOP_SECONDS = 10.0
LOOK_AGAIN_SECONDS = 0.5
# An event may settle a job between the reading and the writing of an execution's spending.
TRIES = 5
# Executions before these were saved long ago.
LATEST = 50


class RebuildServices(ReconcileRunsServices, LostAttemptServices, Protocol):
    """Those of the sweep, and those that restore attempts."""

    executions: ExecutionRows
    runs: RunRows
    shared_jobs: SharedJobRows
    preparations: PreparationRows
    attempts: AttemptRows
    spending: Spending
    jobs: TrainingJobs


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """``attempts``: execution → how many of its attempts were written again. ``unclaimed``: jobs that ran and
    are stopped now, because their execution left no documents. ``stopping``: jobs that have not ended yet.
    """

    attempts: Mapping[str, int]
    unclaimed: tuple[str, ...]
    stopping: tuple[str, ...]


def rebuild_books(
    *,
    lab: str,
    services: RebuildServices,
    executions: Executions,
    now: Callable[[], float],
    sleep: Callable[[float], None],
) -> Rebuilt:
    """Safe to repeat. The executions that the local cloud's end has ended start no job any more."""
    jobs = frozenset(services.jobs.list_names(jobs_prefix(lab)))
    lost = sorted(jobs - {*services.attempts.list_names()})
    restored, unclaimed = restore_attempts(lost, services.jobs.working(jobs_prefix(lab), now=now()), services=services)
    over = _ended_executions(restored, services=services, executions=executions)
    rows = list(services.attempts.list_of(over))
    _note_jobs(rows, services)
    _record_ends([row for row in rows if row.end is None], jobs, lab=lab, services=services, now=now())
    _settle(lab=lab, services=services, executions=executions, now=now, sleep=sleep)
    for name in sorted(over):
        release_warm_pools(name, lab=lab, services=services, sleep=sleep)
    _restate(over, lab=lab, services=services)
    return Rebuilt(
        attempts=restored,
        unclaimed=unclaimed,
        stopping=tuple(sorted(services.jobs.working(jobs_prefix(lab), now=now()))),
    )


def _ended_executions(restored: Iterable[str], *, services: RebuildServices, executions: Executions) -> frozenset[str]:
    """The executions that may have lost something: the latest, and all with a restored or an open attempt."""
    latest = (each.execution_id for each in executions.list_latest(LATEST))
    names = {*restored, *latest, *(row.owner.execution_id for row in services.attempts.list_open())}
    return frozenset(name for name in names if is_over(name, executions))


def _note_jobs(rows: Iterable[AttemptRow], services: RebuildServices) -> None:
    """Each owner names its jobs; of a transaction, a part may have been lost."""
    named: dict[str, frozenset[str]] = {}
    for row in rows:
        execution_id = row.owner.execution_id
        if execution_id not in named:
            kinds: tuple[OwnerRows[Any], ...] = (services.runs, services.shared_jobs, services.preparations)
            owners = (owner for kind in kinds for owner in kind.list_all(execution_id))
            named[execution_id] = frozenset(job for owner in owners for job in owner.jobs)
        if row.job_name not in named[execution_id]:
            rows_of(row.owner, services).note_job(execution_id, owner_id(row.owner), row.job_name)


def _record_ends(
    rows: Sequence[AttemptRow], jobs: frozenset[str], *, lab: str, services: RebuildServices, now: float
) -> None:
    """First every end, then the results: the result of a run needs the ends of all its attempts.

    The function that would have created the job of a row without one has ended with MiniStack.
    """
    for row in rows:
        if row.job_name in jobs:
            record_job_end(row, lab=lab, services=services, now=now)
    for row in rows:
        if row.job_name not in jobs:
            services.executions.mark_stopping(row.owner.execution_id)
            finish_run(row.job_name, lab=lab, services=services, now=row.submitted_at + 2 * NEVER_STARTED_SECONDS)


def _settle(
    *,
    lab: str,
    services: RebuildServices,
    executions: Executions,
    now: Callable[[], float],
    sleep: Callable[[float], None],
) -> None:
    """The sweep stops the jobs that still run and finishes those that have ended; a stopped one soon ends."""
    pace = Pace(may_go_on=lambda: True, sleep=lambda _: None)
    for _ in range(round(STOP_SECONDS / LOOK_AGAIN_SECONDS)):
        swept = sweep(
            lab=lab,
            services=services,
            executions=executions,
            now=now(),
            pace=pace,
            quiet_seconds=float("-inf"),  # the clock of simulated jobs may be ahead of this one
        )
        if swept.open == swept.overdue:
            return
        sleep(LOOK_AGAIN_SECONDS)


def _restate(names: Iterable[str], *, lab: str, services: RebuildServices) -> None:
    """The spending of each execution is what its attempts show, whatever part of their changes was lost."""
    left = set(names)
    for _ in range(TRIES):
        read = {name: services.spending.read(name) for name in sorted(left)}
        shown: dict[str, list[AttemptRow]] = {}
        for row in services.attempts.list_of(left):
            shown.setdefault(row.owner.execution_id, []).append(row)
        for name, before in read.items():
            after = money_of(shown.get(name, ()), _ended_pools(name, lab=lab, services=services))
            if after == before or services.spending.restate(name, before, after):
                left.discard(name)
        if not left:
            return


def _ended_pools(execution_id: str, *, lab: str, services: RebuildServices) -> dict[str, WarmPool]:
    pools = read_warm_pools(services.executions.find(execution_id), lab=lab, jobs=services.jobs)
    return {pool.job_name: pool for pool in pools if pool.is_over}
