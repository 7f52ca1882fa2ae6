"""Rows of runs, shared jobs and preparations: their training jobs so far, and their summary, which
is written once.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from traindyno.aws.table import Item, Table, Update
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.jobs.run_end import text_of
from traindyno.core.jobs.run_summary import RunSummary
from traindyno.store.items import attribute, read_row

# DynamoDB refuses an item of more than 400 KB, and what a job writes of its end has no limit.
MESSAGE_CHARACTERS = 4_000
Row = TypeVar("Row", bound="OwnerRow")


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationSummary:
    """How the preparation ended.

    ``billable_seconds`` of all its attempts; None if any is unknown.
    """

    outcome: Outcome
    message: str | None = None
    billable_seconds: float | None = None


Summary = RunSummary | PreparationSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerRow:
    execution_id: str
    #: The id of the run, of the shared job or of the preparation.
    owner_id: str
    #: The names of its training jobs so far; none of a run that shares them, which its job's row
    #: names.
    jobs: frozenset[str] = frozenset()
    #: The reserved start slot of its next job, in epoch seconds.
    start_at: float | None = None
    #: Summary of the end; None until it has ended.
    summary: Summary | None = None

    @property
    def is_over(self) -> bool:
        return self.summary is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow(OwnerRow):
    summary: RunSummary | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationRow(OwnerRow):
    summary: PreparationSummary | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedJobRow(OwnerRow):
    """A shared job has no summary: its runs have."""

    summary: None = None


class OwnerRows(Generic[Row]):
    """Rows of the owners of jobs: runs, preparations and shared jobs.

    ``prefix`` begins the sort keys, and distinguishes the kinds of owners.
    """

    def __init__(self, table: Table, prefix: str, row_type: type[Row]) -> None:
        self._table = table
        self._prefix = prefix
        self._row_type = row_type

    def read(self, execution_id: str, owner_id: str) -> Row:
        """The row of an owner; an empty one if there is none yet."""
        key = self._key(execution_id, owner_id)
        return self._read(self._table.get(key) or key)

    def list_all(self, execution_id: str) -> Iterator[Row]:
        values = {":pk": f"execution#{execution_id}", ":prefix": self._prefix}
        return map(
            self._read, self._table.query("pk = :pk AND begins_with(sk, :prefix)", values=values)
        )

    def noting(self, execution_id: str, owner_id: str, job_name: str) -> Update:
        """The job is one of this owner's; its start slot is used up."""
        return self._change(execution_id, owner_id, "ADD jobs :job REMOVE start_at", job_name)

    def forgetting(self, execution_id: str, owner_id: str, job_name: str) -> Update:
        return self._change(execution_id, owner_id, "DELETE jobs :job", job_name)

    def note_start(self, execution_id: str, owner_id: str, start_at: float) -> None:
        """Store the time at which the next job may start."""
        self._table.update(
            self._key(execution_id, owner_id),
            "SET start_at = :start_at",
            values={":start_at": attribute(float(start_at))},
        )

    def record(self, execution_id: str, owner_id: str, summary: Summary) -> bool:
        """Write the summary exactly once: False if the owner has one already.

        A long message is cut off; the result in S3 has it whole.
        """
        message = (text_of(summary.message) or "")[:MESSAGE_CHARACTERS] or None
        updated = self._table.update(
            self._key(execution_id, owner_id),
            "SET summary = :summary",
            values={":summary": attribute(replace(summary, message=message))},
            condition="attribute_not_exists(summary)",
        )
        return updated is not None

    def _read(self, item: Item) -> Row:
        execution_id = item["pk"].removeprefix("execution#")
        owner_id = item["sk"].removeprefix(self._prefix)
        return read_row(item, self._row_type, execution_id=execution_id, owner_id=owner_id)

    def _change(self, execution_id: str, owner_id: str, expression: str, job_name: str) -> Update:
        return Update(
            key=self._key(execution_id, owner_id),
            expression=expression,
            values={":job": {job_name}},
        )

    def _key(self, execution_id: str, owner_id: str) -> dict[str, str]:
        return {"pk": f"execution#{execution_id}", "sk": f"{self._prefix}{owner_id}"}


class RunRows(OwnerRows[RunRow]):
    def __init__(self, table: Table) -> None:
        super().__init__(table, "run#", RunRow)


class SharedJobRows(OwnerRows[SharedJobRow]):
    def __init__(self, table: Table) -> None:
        super().__init__(table, "job#", SharedJobRow)


class PreparationRows(OwnerRows[PreparationRow]):
    def __init__(self, table: Table) -> None:
        super().__init__(table, "preparation#", PreparationRow)
