"""What an execution has paid so far, whether or not it has ended, been aborted or failed."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindyno.api.lab_target import LabTarget
from traindyno.aws.executions import Execution, ExecutionUnknown
from traindyno.cli.inputs.paid_results import AnyResult, load_paid
from traindyno.core.costs.quantity_text import UNKNOWN
from traindyno.core.costs.receipt import Receipt, write_receipt
from traindyno.lab.services import LabServices
from traindyno.lab.warm_pools import read_warm_pools, with_warm_pools


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionReceipt:
    """While ``running_jobs`` are in flight or ``warm_jobs`` keep their instances, billing continues, and the receipt is
    not final.

    ``receipt`` and ``is_final`` are of the training jobs.
    """

    execution_id: str
    status: str
    is_final: bool
    is_simulated: bool
    running_jobs: tuple[str, ...]
    warm_jobs: tuple[str, ...]
    receipt: Receipt


def read_receipt(target: LabTarget, execution_id: str) -> ExecutionReceipt:
    execution = _find_execution(target, execution_id)
    return load_receipt(execution, services=target.services, lab=target.deployment.lab, now=time.time())


def _find_execution(target: LabTarget, execution_id: str) -> Execution:
    """Step Functions forgets an execution 90 days after its end, and the local cloud may lose one: its row stays."""
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


def load_receipt(execution: Execution, *, services: LabServices, lab: str, now: float) -> ExecutionReceipt:
    execution_id = execution.execution_id
    preparations, runs = load_paid(execution_id, services)
    results: list[AnyResult] = [*preparations, *runs]
    running = tuple(dict.fromkeys(_running(results, services)))
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
    )


def _running(results: Sequence[AnyResult], services: LabServices) -> Iterator[str]:
    for attempt in (attempt for result in results for attempt in result.attempts):
        has_ended = attempt.ended_at is not None and attempt.share is None  # the end of a share is the run's
        if attempt.billable_seconds is None and not has_ended:
            row = services.attempts.find(attempt.job_name)
            if row and row.end is None:
                yield attempt.job_name
