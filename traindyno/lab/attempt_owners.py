"""A run, a shared job and a preparation own attempts: the row of each, and its attempts."""

from typing import Any, Protocol

from traindyno.core.jobs.job import AttemptOwner, Job, owner_id, runs_of
from traindyno.core.run.tokens import DataPreparation
from traindyno.core.suite.suite import Run
from traindyno.store.attempts import AttemptRow, AttemptRows
from traindyno.store.owners import OwnerRow, OwnerRows, PreparationRows, RunRows, SharedJobRows


class OwnerServices(Protocol):
    runs: RunRows
    shared_jobs: SharedJobRows
    preparations: PreparationRows


def rows_of(owner: AttemptOwner, services: OwnerServices) -> OwnerRows[Any]:
    match owner:
        case Run():
            return services.runs
        case Job():
            return services.shared_jobs
        case DataPreparation():
            return services.preparations


def row_of(owner: AttemptOwner, services: OwnerServices) -> OwnerRow:
    row: OwnerRow = rows_of(owner, services).read(owner.execution_id, owner_id(owner))
    return row


def is_recorded(owner: AttemptOwner, services: OwnerServices) -> bool:
    """Whether the owner, or each run of a shared job, has its result."""
    return all(row_of(run, services).is_over for run in runs_of(owner) or (owner,))


def attempts_of(row: OwnerRow, attempts: AttemptRows) -> list[AttemptRow]:
    """The attempts in the order of their numbers."""
    rows = [attempt for name in row.jobs if (attempt := attempts.find(name))]
    return sorted(rows, key=lambda attempt: attempt.number)
