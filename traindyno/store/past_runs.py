"""The executions of the same work: rows that find them, and their runs, from which a plan computes expectations."""

from dataclasses import dataclass
from itertools import islice
from typing import Any, Self

from traindyno.aws.table import Item, Table
from traindyno.core.planning.history import PastRun, work_id_of
from traindyno.core.suite.suite import Suite
from traindyno.store.executions import ExecutionRows
from traindyno.store.owners import RunRows


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkRow:
    """``work_id``: see ``work_id_of``. ``started_at``: in whole epoch seconds."""

    work_id: str
    started_at: int
    execution_id: str

    def to_item(self) -> dict[str, Any]:
        return {"pk": f"work#{self.work_id}", "sk": f"{self.started_at}#{self.execution_id}"}

    @classmethod
    def from_item(cls, item: Item) -> Self:
        started_at, _, execution_id = item["sk"].partition("#")
        return cls(work_id=item["pk"].removeprefix("work#"), started_at=int(started_at), execution_id=execution_id)


class WorkIndex:
    def __init__(self, table: Table) -> None:
        self._table = table

    def note(self, row: WorkRow) -> None:
        self._table.put(row.to_item())

    def list_executions(self, work_id: str, limit: int) -> list[str]:
        """Names of at most ``limit`` executions of the work, the latest first."""
        items = self._table.query("pk = :pk", values={":pk": f"work#{work_id}"}, latest_first=True)
        # PlanSuite may have run twice, so that an execution has two rows.
        return list(islice(dict.fromkeys(WorkRow.from_item(item).execution_id for item in items), limit))


LATEST_EXECUTIONS = 5


def read_past_runs(suite: Suite, *, index: WorkIndex, executions: ExecutionRows, runs: RunRows) -> tuple[PastRun, ...]:
    """The runs of the latest executions of the same work, of which it is known what they were billed."""
    found: list[PastRun] = []
    for execution_id in index.list_executions(work_id_of(suite), LATEST_EXECUTIONS):
        if execution := executions.find(execution_id):
            ended = (row.summary for row in runs.list_all(execution_id))
            # a run that confirmed a leader is longer
            usual = (each for each in ended if each and each.trial <= execution.trials)
            found += [PastRun(summary=each, max_steps=execution.max_steps) for each in usual]
    return tuple(run for run in found if run.summary.time.billable_seconds is not None)
