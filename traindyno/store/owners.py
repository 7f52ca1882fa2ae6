"""What rows of runs and of preparations share: the names of their training jobs, and the next job's start slot."""

from typing import Protocol

from traindyno.aws.table import Table
from traindyno.store.items import attribute


class OwnerRow(Protocol):
    """``jobs`` are the names of the training jobs so far. ``start_at``: the reserved start slot, in epoch seconds."""

    @property
    def jobs(self) -> frozenset[str]: ...

    @property
    def start_at(self) -> float | None: ...

    @property
    def is_over(self) -> bool: ...


class OwnerRows:
    def __init__(self, table: Table, prefix: str) -> None:
        self._table = table
        self._prefix = prefix

    def note_job(self, execution_id: str, owner_id: str, job_name: str) -> None:
        """Safe to repeat. The start slot is used up."""
        self._table.update(
            self._key(execution_id, owner_id), "ADD jobs :job REMOVE start_at", values={":job": {job_name}}
        )

    def forget_job(self, execution_id: str, owner_id: str, job_name: str) -> None:
        self._table.update(self._key(execution_id, owner_id), "DELETE jobs :job", values={":job": {job_name}})

    def note_start(self, execution_id: str, owner_id: str, start_at: float) -> None:
        """When the next job may start."""
        self._table.update(
            self._key(execution_id, owner_id),
            "SET start_at = :start_at",
            values={":start_at": attribute(float(start_at))},
        )

    def _key(self, execution_id: str, owner_id: str) -> dict[str, str]:
        return {"pk": f"execution#{execution_id}", "sk": f"{self._prefix}{owner_id}"}
