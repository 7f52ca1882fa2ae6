"""Rows of runs: their training jobs so far, and their summary after their end."""

from dataclasses import dataclass
from typing import Any, Self

from traindyno.aws.table import Item, Table
from traindyno.core.jobs.run_summary import RunSummary
from traindyno.store.items import attributes_of, read_row
from traindyno.store.owners import OwnerRows

PREFIX = "run#"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """``jobs`` are the names of the run's training jobs so far; ``summary`` is None until the run has ended.

    ``start_at``: the reserved start slot of its next job, in epoch seconds.
    """

    execution_id: str
    run_id: str
    jobs: frozenset[str] = frozenset()
    start_at: float | None = None
    summary: RunSummary | None = None

    @property
    def is_over(self) -> bool:
        return self.summary is not None

    def to_item(self) -> dict[str, Any]:
        return {"pk": f"execution#{self.execution_id}", "sk": f"{PREFIX}{self.run_id}", **attributes_of(self)}

    @classmethod
    def from_item(cls, item: Item) -> Self:
        execution_id, run_id = item["pk"].removeprefix("execution#"), item["sk"].removeprefix(PREFIX)
        return read_row(item, cls, execution_id=execution_id, run_id=run_id)


class RunRows(OwnerRows[RunRow]):
    def __init__(self, table: Table) -> None:
        super().__init__(table, PREFIX, RunRow)

    def record(self, summary: RunSummary) -> bool:
        """Exactly once: False if the run has its summary already."""
        return self._record(summary.execution_id, summary.run_id, summary)
