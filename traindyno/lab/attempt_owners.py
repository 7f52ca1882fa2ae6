"""A run and a preparation own attempts: the row of either, and its attempts."""

from typing import Any, Protocol

from traindyno.core.jobs.job import AttemptOwner, owner_id
from traindyno.core.suite.suite import Run
from traindyno.store.attempts import AttemptRow, AttemptRows
from traindyno.store.owners import OwnerRow, OwnerRows, PreparationRows, RunRows


class OwnerServices(Protocol):
    runs: RunRows
    preparations: PreparationRows


def rows_of(owner: AttemptOwner, services: OwnerServices) -> OwnerRows[Any]:
    return services.runs if isinstance(owner, Run) else services.preparations


def row_of(owner: AttemptOwner, services: OwnerServices) -> OwnerRow:
    row: OwnerRow = rows_of(owner, services).read(owner.execution_id, owner_id(owner))
    return row


def attempts_of(row: OwnerRow, attempts: AttemptRows) -> list[AttemptRow]:
    """The attempts in the order of their numbers."""
    found = [attempt for name in row.jobs if (attempt := attempts.find(name))]
    return sorted(found, key=lambda attempt: attempt.number)
