"""The executions of the same work: rows that find them, and their runs, from which a plan computes
expectations.
"""

from itertools import islice

from traindyno.aws.table import Table
from traindyno.core.planning.history import PastRun, work_id_of
from traindyno.core.suite.suite import Suite
from traindyno.store.executions import ExecutionRows
from traindyno.store.owners import RunRows

LATEST_EXECUTIONS = 5


class WorkIndex:
    """An item for each execution of a work, sorted by its start in whole epoch seconds; see
    ``work_id_of``.
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    def note(self, work_id: str, execution_id: str, *, started_at: int) -> None:
        self._table.put({"pk": f"work#{work_id}", "sk": f"{started_at}#{execution_id}"})

    def list_executions(self, work_id: str, limit: int) -> list[str]:
        """Names of at most ``limit`` executions of the work, the latest first."""
        items = self._table.query("pk = :pk", values={":pk": f"work#{work_id}"}, latest_first=True)
        # PlanSuite may have run twice, so that an execution has two rows.
        return list(islice(dict.fromkeys(item["sk"].partition("#")[2] for item in items), limit))


def read_past_runs(
    suite: Suite, *, index: WorkIndex, executions: ExecutionRows, runs: RunRows
) -> tuple[PastRun, ...]:
    """The runs of the latest executions of the same work, of which it is known what they were
    billed.
    """
    past_runs: list[PastRun] = []
    for execution_id in index.list_executions(work_id_of(suite), LATEST_EXECUTIONS):
        execution = executions.find(execution_id)
        if execution:
            ended = (row.summary for row in runs.list_all(execution_id))
            # a run that confirmed a leader is longer
            usual = (summary for summary in ended if summary and summary.trial <= execution.trials)
            past_runs += [
                PastRun(summary=summary, max_steps=execution.max_steps) for summary in usual
            ]
    return tuple(run for run in past_runs if run.summary.time.billable_seconds is not None)
