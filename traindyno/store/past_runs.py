"""Earlier runs of a suite's cells, from the lab's own rows."""

from collections.abc import Iterator

from traindyno.core.jobs.run_summary import RunSummary
from traindyno.core.planning.history import PastRun, work_id_of
from traindyno.core.suite.suite import Suite
from traindyno.store.executions import ExecutionRows
from traindyno.store.owners import RunRows
from traindyno.store.work_index import WorkIndex

LATEST_EXECUTIONS = 5


def read_past_runs(suite: Suite, *, index: WorkIndex, executions: ExecutionRows, runs: RunRows) -> tuple[PastRun, ...]:
    """The runs of the latest executions of the same work."""
    return tuple(_past_runs(suite, index=index, executions=executions, runs=runs))


def _past_runs(suite: Suite, *, index: WorkIndex, executions: ExecutionRows, runs: RunRows) -> Iterator[PastRun]:
    for execution_id in index.list_executions(work_id_of(suite), LATEST_EXECUTIONS):
        execution = executions.find(execution_id)
        for row in runs.list_all(execution_id) if execution else ():
            past = past_run(row.summary, max_steps=execution.max_steps) if execution and row.summary else None
            if past is not None:
                yield past


def past_run(summary: RunSummary, *, max_steps: int) -> PastRun | None:
    """None if what it was billed is unknown."""
    alone = summary.alone_billable_seconds
    billable_seconds = summary.billable_seconds if alone is None else alone
    if billable_seconds is None:
        return None
    warmup, steady = summary.warmup_steps, summary.steady_steps
    return PastRun(
        execution_id=summary.execution_id,
        cell_id=summary.cell_id,
        outcome=summary.outcome,
        attempts=summary.attempts,
        billable_seconds=billable_seconds,
        seconds=summary.job_seconds,
        overhead_seconds=summary.overhead_seconds,
        overhead_billable_seconds=summary.overhead_billable_seconds,
        steps=None if warmup is None or steady is None else warmup + steady,
        mean_step_seconds=summary.mean_step_seconds,
        max_steps=max_steps,
        is_simulated=summary.is_simulated,
        late_loss=summary.late_loss,
        hosts=summary.hosts,
        data_wait_share=summary.data_wait_share,
        seed=summary.seed,
        probe_seconds=summary.probe_seconds or 0.0,
    )
