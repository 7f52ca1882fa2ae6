"""Rows of runs and of preparations: their training jobs so far, and their summary, which is written once."""

from collections.abc import Iterator
from typing import Any, Generic, Protocol, Self, TypeVar

from traindyno.aws.table import Item, Table, Update
from traindyno.store.items import attribute


class OwnerRow(Protocol):
    """``jobs`` are the names of the training jobs so far. ``start_at``: the reserved start slot, in epoch seconds."""

    @property
    def jobs(self) -> frozenset[str]: ...

    @property
    def start_at(self) -> float | None: ...

    @property
    def is_over(self) -> bool: ...

    @classmethod
    def from_item(cls, item: Item) -> Self: ...


Row = TypeVar("Row", bound=OwnerRow)


class OwnerRows(Generic[Row]):
    """``prefix`` of the sort keys, which distinguishes runs from preparations."""

    def __init__(self, table: Table, prefix: str, row_type: type[Row]) -> None:
        self._table = table
        self._prefix = prefix
        self._row_type = row_type

    def read(self, execution_id: str, owner_id: str) -> Row:
        """The row of an owner; an empty one if there is none yet."""
        key = self._key(execution_id, owner_id)
        return self._row_type.from_item(self._table.get(key) or key)

    def list_all(self, execution_id: str) -> Iterator[Row]:
        values = {":pk": f"execution#{execution_id}", ":prefix": self._prefix}
        return map(self._row_type.from_item, self._table.query("pk = :pk AND begins_with(sk, :prefix)", values=values))

    def noting(self, execution_id: str, owner_id: str, job_name: str) -> Update:
        """The job is one of this owner's; its start slot is used up."""
        return self._change(execution_id, owner_id, "ADD jobs :job REMOVE start_at", job_name)

    def forgetting(self, execution_id: str, owner_id: str, job_name: str) -> Update:
        return self._change(execution_id, owner_id, "DELETE jobs :job", job_name)

    def note_start(self, execution_id: str, owner_id: str, start_at: float) -> None:
        """When the next job may start."""
        self._table.update(
            self._key(execution_id, owner_id),
            "SET start_at = :start_at",
            values={":start_at": attribute(float(start_at))},
        )

    def _record(self, execution_id: str, owner_id: str, summary: Any) -> bool:
        """Exactly once: False if the owner has its summary already."""
        updated = self._table.update(
            self._key(execution_id, owner_id),
            "SET summary = :summary",
            values={":summary": attribute(summary)},
            condition="attribute_not_exists(summary)",
        )
        return updated is not None

    def _change(self, execution_id: str, owner_id: str, expression: str, job_name: str) -> Update:
        return Update(key=self._key(execution_id, owner_id), expression=expression, values={":job": {job_name}})

    def _key(self, execution_id: str, owner_id: str) -> dict[str, str]:
        return {"pk": f"execution#{execution_id}", "sk": f"{self._prefix}{owner_id}"}
