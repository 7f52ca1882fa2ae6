"""Rows of preparations: their training jobs so far, and their summary after their end."""

from dataclasses import dataclass
from typing import Any, Self

from traindyno.aws.table import Item, Table
from traindyno.core.jobs.outcome import Outcome
from traindyno.store.items import attributes_of, read_row
from traindyno.store.owners import OwnerRows

PREFIX = "preparation#"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationSummary:
    """How the preparation ended. ``billable_seconds`` of all its attempts; None if any is unknown."""

    outcome: Outcome
    message: str | None = None
    billable_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationRow:
    """``jobs`` are the names of its training jobs so far; ``summary`` is None until the preparation has ended.

    ``start_at``: the reserved start slot of its next job, in epoch seconds.
    """

    execution_id: str
    preparation_id: str
    jobs: frozenset[str] = frozenset()
    start_at: float | None = None
    summary: PreparationSummary | None = None

    @property
    def is_over(self) -> bool:
        return self.summary is not None

    def to_item(self) -> dict[str, Any]:
        return {"pk": f"execution#{self.execution_id}", "sk": f"{PREFIX}{self.preparation_id}", **attributes_of(self)}

    @classmethod
    def from_item(cls, item: Item) -> Self:
        execution_id, preparation_id = item["pk"].removeprefix("execution#"), item["sk"].removeprefix(PREFIX)
        return read_row(item, cls, execution_id=execution_id, preparation_id=preparation_id)


class PreparationRows(OwnerRows[PreparationRow]):
    def __init__(self, table: Table) -> None:
        super().__init__(table, PREFIX, PreparationRow)

    def record(self, execution_id: str, preparation_id: str, summary: PreparationSummary) -> bool:
        """Exactly once: False if the preparation has its summary already."""
        return self._record(execution_id, preparation_id, summary)
