"""What an execution has paid so far, whether or not it has ended, been aborted or failed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from traindyno.api.lab_target import LabTarget
from traindyno.aws.executions import Execution, ExecutionUnknown
from traindyno.core.costs.quantity_text import UNKNOWN
from traindyno.core.costs.receipt import Receipt, write_receipt
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.jobs.job import AttemptOwner, owner_id, runs_of
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_phases import measure_phases
from traindyno.core.measurement.run_result import (
    PaidPrice,
    PreparationResult,
    RunResult,
    build_run_result,
)
from traindyno.core.run.tokens import DataPreparation
from traindyno.core.s3_keys import suite_key
from traindyno.core.suite.suite import Suite
from traindyno.core.suite.suite_file import read_stored_suite
from traindyno.lab.attempt_owners import attempts_of
from traindyno.lab.services import LabServices
from traindyno.lab.shared_runs import shared_runs_of
from traindyno.store.attempts import AttemptRow
from traindyno.store.results import load_preparations, load_results

AnyResult = RunResult | PreparationResult
Result = TypeVar("Result", RunResult, PreparationResult)
# MiniStack gives this error to the executions that it finds running when it starts.
ENDED_BY_RESTART = "States.ServiceRestart"


def load_paid(
    execution_id: str, services: LabServices
) -> tuple[list[PreparationResult], list[RunResult]]:
    """The recorded results; for the other runs, results made from their attempts.

    Lines of the execution that it continues come first.
    """
    execution = services.executions.find(execution_id)
    continues = execution.continues if execution else None
    earlier = load_paid(continues, services) if continues else ([], [])
    preparations = [
        _refreshed(preparation, services)
        for preparation in load_preparations(services.bucket, execution_id)
    ]
    runs = {
        result.run.run_id: _refreshed(result, services)
        for result in load_results(services.bucket, execution_id)
        if result.run.execution_id == execution_id
    }
    recorded = runs.keys() | {
        preparation.preparation.preparation_id for preparation in preparations
    }
    owned = [
        _Owned(
            owner=rows[0].owner, rows=rows, attempts=[row.end or _unfinished(row) for row in rows]
        )
        for of_kind in (
            services.preparations.list_all(execution_id),
            services.runs.list_all(execution_id),
        )
        for carrier in of_kind
        if (rows := attempts_of(carrier, services.attempts))
    ]
    shared = list(_shared_attempts(execution_id, runs, services))
    unrecorded = [
        owned_row for owned_row in (*owned, *shared) if owner_id(owned_row.owner) not in recorded
    ]
    for shared_job in shared:
        if (run_id := owner_id(shared_job.owner)) in runs:
            runs[run_id] = replace(runs[run_id], attempts=tuple(shared_job.attempts))
    if unrecorded:
        suite = services.bucket.read_as(suite_key(execution_id), read_stored_suite)
        for owner in unrecorded:
            match _unrecorded(owner, suite):
                case RunResult() as run:
                    runs[run.run.run_id] = run
                case PreparationResult() as preparation:
                    preparations.append(preparation)
    return [*earlier[0], *preparations], [*earlier[1], *runs.values()]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Owned:
    """Training jobs of one owner.

    ``rows`` are the jobs' rows; ``attempts`` what they are of the owner's.
    """

    owner: AttemptOwner
    rows: Sequence[AttemptRow]
    attempts: Sequence[Attempt]


def _shared_attempts(
    execution_id: str, runs: Mapping[str, RunResult], services: LabServices
) -> Iterator[_Owned]:
    """Attempts of shared jobs with a run that has no result, or that was recorded before the job
    ended.
    """
    for job in services.shared_jobs.list_all(execution_id):
        rows = attempts_of(job, services.attempts)
        carried = runs_of(rows[0].owner) if rows else ()
        known = [runs.get(run.run_id) for run in carried]
        if all(
            run and all(attempt.billable_seconds is not None for attempt in run.attempts)
            for run in known
        ):
            continue
        ends = [row.end or _unfinished(row) for row in rows]
        if shared := shared_runs_of(rows[-1], services.bucket):
            for run in carried:
                yield _Owned(owner=run, rows=rows, attempts=shared.attempts_of(run.run_id, ends))


def _refreshed(result: Result, services: LabServices) -> Result:
    """A run may have been recorded while its job was still being stopped."""
    attempts = []
    for attempt in result.attempts:
        is_known = attempt.billable_seconds is not None or attempt.share is not None
        row = None if is_known else services.attempts.find(attempt.job_name)
        attempts.append(row.end if row and row.end else attempt)
    return replace(result, attempts=tuple(attempts))


def _unrecorded(owned: _Owned, suite: Suite) -> AnyResult:
    """A result made from the attempts."""
    owner = owned.owner
    price = PaidPrice(usd_per_instance_hour=owned.rows[0].usd_per_hour)
    if isinstance(owner, DataPreparation):
        return PreparationResult(
            preparation=owner,
            outcome=Outcome.STOPPED_BY_USER,
            message=None,
            log_tail=(),
            attempts=tuple(owned.attempts),
            phases_seconds=measure_phases(owned.attempts, None, None, warmup_steps=0),
            price=price,
        )
    (run,) = runs_of(owner)
    return build_run_result(
        run,
        suite=suite,
        outcome=Outcome.STOPPED_BY_USER,
        attempts=owned.attempts,
        step_log=None,
        price=price,
    )


def _unfinished(row: AttemptRow) -> Attempt:
    return Attempt(number=row.number, job_name=row.job_name, submitted_at=row.submitted_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionReceipt:
    """While ``running_jobs`` are in flight, billing continues, and the receipt is not final.

    Nor is it where ``may_lack_jobs``: MiniStack ended while the execution ran, and jobs that it had
    not saved are in no row.
    """

    execution_id: str
    status: str
    is_final: bool
    is_simulated: bool
    running_jobs: tuple[str, ...]
    receipt: Receipt
    may_lack_jobs: bool = False


def read_receipt(target: LabTarget, execution_id: str) -> ExecutionReceipt:
    execution = _find_execution(target, execution_id)
    return load_receipt(execution, services=target.services)


def _find_execution(target: LabTarget, execution_id: str) -> Execution:
    """Step Functions forgets an execution 90 days after its end, and the local cloud may lose one:
    its row stays.
    """
    try:
        return target.describe(execution_id)
    except ExecutionUnknown:
        row = target.services.executions.find(execution_id)
        if row is None:
            raise
        return Execution(
            execution_id=execution_id,
            status=UNKNOWN.upper(),
            started_at=row.started_at,
            ended_at=None,
            error=None,
            cause=None,
        )


def load_receipt(execution: Execution, *, services: LabServices) -> ExecutionReceipt:
    execution_id = execution.execution_id
    preparations, runs = load_paid(execution_id, services)
    results: list[AnyResult] = [*preparations, *runs]
    running = tuple(dict.fromkeys(_running(results, services)))
    may_lack_jobs = execution.error == ENDED_BY_RESTART
    return ExecutionReceipt(
        execution_id=execution_id,
        status=execution.status,
        is_final=not (execution.is_running or running or may_lack_jobs),
        is_simulated=any(result.is_simulated for result in results),
        running_jobs=running,
        receipt=write_receipt(results, running_jobs=running),
        may_lack_jobs=may_lack_jobs,
    )


def _running(results: Sequence[AnyResult], services: LabServices) -> Iterator[str]:
    for attempt in (attempt for result in results for attempt in result.attempts):
        has_ended = (
            attempt.ended_at is not None and attempt.share is None
        )  # the end of a share is the run's
        if attempt.billable_seconds is None and not has_ended:
            row = services.attempts.find(attempt.job_name)
            if row and row.end is None:
                yield attempt.job_name
