"""What an execution has paid so far, whether or not it has ended, been aborted or failed."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from traindyno.aws.executions import Execution, ExecutionUnknown
from traindyno.cli.inputs.deployment_cost import DeploymentCost, costs_of
from traindyno.cli.lab_choice import LabTarget
from traindyno.core.costs.quantity_text import UNKNOWN
from traindyno.core.costs.receipt import Receipt, write_receipt
from traindyno.core.jobs.attempt import Attempt, instance_type_of
from traindyno.core.jobs.job import owner_id
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.preparation_result import PreparationResult
from traindyno.core.measurement.run_phases import measure_phases
from traindyno.core.measurement.run_result import PaidPrice, RunResult, build_run_result
from traindyno.core.s3_keys import suite_key
from traindyno.core.suite.fallback_cells import run_on
from traindyno.core.suite.suite import Run, Suite
from traindyno.core.suite.suite_file import read_stored_suite
from traindyno.lab.attempt_owners import attempts_of
from traindyno.lab.services import LabServices
from traindyno.lab.warm_pools import read_warm_pools, with_warm_pools
from traindyno.store.attempts import AttemptRow
from traindyno.store.results import load_preparations, load_results

AnyResult = RunResult | PreparationResult
Result = TypeVar("Result", RunResult, PreparationResult)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionReceipt:
    """While ``running_jobs`` are in flight or ``warm_jobs`` keep their instances, billing continues, and the receipt is
    not final.

    ``receipt`` and ``is_final`` are of the training jobs. ``deployments``: the served models of the execution.
    """

    execution_id: str
    status: str
    is_final: bool
    is_simulated: bool
    running_jobs: tuple[str, ...]
    warm_jobs: tuple[str, ...]
    receipt: Receipt
    deployments: tuple[DeploymentCost, ...] = ()


def read_receipt(target: LabTarget, execution_id: str) -> ExecutionReceipt:
    execution = _find_execution(target, execution_id)
    return load_receipt(execution, services=target.services, lab=target.deployment.lab, now=time.time())


def _find_execution(target: LabTarget, execution_id: str) -> Execution:
    """Step Functions forgets an execution 90 days after its end, and the local cloud may lose one: its row stays."""
    try:
        return target.executions.describe(execution_id)
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


def load_receipt(execution: Execution, *, services: LabServices, lab: str, now: float) -> ExecutionReceipt:
    execution_id = execution.execution_id
    preparations, runs = _load_results(execution_id, services)
    results: list[AnyResult] = [*preparations, *runs]
    running = tuple(_running(results, services))
    pools = read_warm_pools(services.executions.find(execution_id), lab=lab, jobs=services.jobs)
    kept_by = tuple(pool.job_name for pool in pools if not pool.is_over)
    return ExecutionReceipt(
        execution_id=execution_id,
        status=execution.status,
        is_final=not execution.is_running and not running and not kept_by,
        is_simulated=any(result.is_simulated for result in results),
        running_jobs=running,
        warm_jobs=kept_by,
        receipt=write_receipt([*preparations, *with_warm_pools(runs, pools)], running_jobs=running),
        deployments=costs_of(execution_id, services.deployments.list_all(), now),
    )


def _load_results(execution_id: str, services: LabServices) -> tuple[list[PreparationResult], list[RunResult]]:
    """The recorded results; for the other runs, results made from their attempts."""
    preparations = [_refreshed(each, services) for each in load_preparations(services.bucket, execution_id)]
    runs = [_refreshed(each, services) for each in load_results(services.bucket, execution_id)]
    recorded = {result.run.run_id for result in runs} | {each.preparation.preparation_id for each in preparations}
    attempts = [
        attempts_of(row, services.attempts)
        for rows in (services.preparations.list_all(execution_id), services.runs.list_all(execution_id))
        for row in rows
    ]
    unrecorded = [each for each in attempts if each and owner_id(each[0].owner) not in recorded]
    if unrecorded:
        suite = services.bucket.read_as(suite_key(execution_id), read_stored_suite)
        for each in unrecorded:
            match _unrecorded(each, suite):
                case RunResult() as run:
                    runs.append(run)
                case PreparationResult() as preparation:
                    preparations.append(preparation)
    return preparations, runs


def _refreshed(result: Result, services: LabServices) -> Result:
    """A run may have been recorded while its job was still being stopped."""
    return replace(result, attempts=tuple(_end(attempt, services) for attempt in result.attempts))


def _end(attempt: Attempt, services: LabServices) -> Attempt:
    row = services.attempts.find(attempt.job_name) if attempt.billable_seconds is None else None
    return row.end if row and row.end else attempt


def _unrecorded(rows: Sequence[AttemptRow], suite: Suite) -> AnyResult:
    """A result made from the attempts, at the price of its instance type; while this is unknown, at the highest one."""
    owner = rows[0].owner
    attempts = [row.end or _unfinished(row) for row in rows]
    placed_on = instance_type_of(attempts)
    price = PaidPrice(usd_per_instance_hour=rows[0].usd_by_type.get(placed_on or "", rows[0].usd_per_hour))
    if not isinstance(owner, Run):
        return PreparationResult(
            preparation=owner,
            outcome=Outcome.STOPPED_BY_USER,
            message=None,
            log_tail=(),
            attempts=tuple(attempts),
            phases_seconds=measure_phases(attempts, None, None, warmup_steps=0),
            price=price,
        )
    return build_run_result(
        run_on(suite, owner, placed_on) if placed_on else owner,
        suite=suite,
        outcome=Outcome.STOPPED_BY_USER,
        attempts=attempts,
        step_log=None,
        price=price,
    )


def _unfinished(row: AttemptRow) -> Attempt:
    return Attempt(number=row.number, job_name=row.job_name, submitted_at=row.submitted_at)


def _running(results: Sequence[AnyResult], services: LabServices) -> Iterator[str]:
    for attempt in (attempt for result in results for attempt in result.attempts):
        if attempt.billable_seconds is None and attempt.ended_at is None:
            row = services.attempts.find(attempt.job_name)
            if row and row.end is None:
                yield attempt.job_name
