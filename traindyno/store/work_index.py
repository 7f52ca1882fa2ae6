"""Rows that find earlier executions of the same work, from whose runs a plan computes its expectations."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Self

from traindyno.aws.table import Item, Table


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
        return list(islice(dict.fromkeys(row.execution_id for row in self._rows(work_id)), limit))

    def _rows(self, work_id: str) -> Iterator[WorkRow]:
        # PlanSuite may have run twice, so that an execution has two rows.
        return map(
            WorkRow.from_item, self._table.query("pk = :pk", values={":pk": f"work#{work_id}"}, latest_first=True)
        )
