"""Rows of attempts: the training job, the task that waits for it, and the job's end."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Self

from traindyno.aws.table import Item, Table, Update
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.jobs.job import AttemptOwner
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.lab_names import OPEN_ATTEMPTS_INDEX
from traindyno.store.items import attribute, attributes_of, read_row

OPEN = "open"
ATTEMPT = "attempt"
JOB_PREFIX = "job#"
# The index's sort key; the owner contains it too.
EXECUTION = "execution_id"
END_NAME = {"#end": "end"}
NOT_ENDED = "attribute_not_exists(#end)"
NOT_HANDED_OVER = "submitted_at = :submitted"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRow:
    """A training job that is submitted for a run or for a preparation."""

    job_name: str
    #: The run or the preparation.
    owner: AttemptOwner
    #: 1 for the first attempt of the owner.
    number: int
    #: Whether the suite allows no further attempt.
    is_last: bool
    #: The token of the task that waits for the job's end.
    token: str
    #: Epoch seconds, of the latest submission.
    submitted_at: float
    instance_count: int
    #: The job's time limit, and the download of its image, after which it may begin.
    max_job_seconds: int
    #: The price of one instance, as the suite was planned.
    usd_per_hour: Decimal
    #: The most that the job may cost, reserved under the execution's cap until the job has ended.
    reserved_usd: Decimal = Decimal(0)
    #: True until the waiting task has its answer.
    is_open: bool = True
    #: Why the lab asked the job to stop, if it did.
    stopped_for: Outcome | None = None
    #: End of the job; None until it was described.
    end: Attempt | None = None

    def to_item(self) -> dict[str, Any]:
        attributes = attributes_of(self)
        is_open = {OPEN: OPEN} if attributes.pop("is_open") else {}
        return {
            **attempt_key(self.job_name),
            **attributes,
            EXECUTION: self.owner.execution_id,
            **is_open,
        }

    @classmethod
    def from_item(cls, item: Item) -> Self:
        return read_row(item, cls, is_open=OPEN in item)


class AttemptRows:
    def __init__(self, table: Table) -> None:
        self._table = table

    def find(self, job_name: str) -> AttemptRow | None:
        item = self._table.get(attempt_key(job_name))
        return AttemptRow.from_item(item) if item else None

    def hand_over(self, job_name: str, token: str, *, now: float) -> bool:
        """Another task now waits for this attempt, and submits its job again at ``now``, in epoch
        seconds; False if the job's end is known already.
        """
        return self._update(job_name, token=token, submitted_at=now)

    def note_stop(self, job_name: str, outcome: Outcome) -> bool:
        """The lab stops the job for this reason; False if the job has ended already."""
        return self._update(job_name, stopped_for=outcome)

    def close(self, job_name: str) -> None:
        """The waiting task has its answer, or no task waits."""
        self._table.update(
            attempt_key(job_name),
            "REMOVE #open",
            names={"#open": OPEN},
            condition="attribute_exists(pk)",
        )

    def list_open(self, execution_id: str | None = None) -> Iterator[AttemptRow]:
        condition = "#open = :open"
        values = {":open": OPEN}
        if execution_id is not None:
            condition = f"{condition} AND {EXECUTION} = :id"
            values = {**values, ":id": execution_id}
        items = self._table.query(
            condition, values=values, names={"#open": OPEN}, index=OPEN_ATTEMPTS_INDEX
        )
        return map(AttemptRow.from_item, items)

    def _update(self, job_name: str, **changes: object) -> bool:
        """False if there is no such attempt, or its end is known."""
        updated = self._table.update(
            attempt_key(job_name),
            f"SET {', '.join(f'#{name} = :{name}' for name in changes)}",
            values={f":{name}": attribute(value) for name, value in changes.items()},
            names={**{f"#{name}": name for name in changes}, **END_NAME},
            condition=f"attribute_exists(pk) AND {NOT_ENDED}",
        )
        return updated is not None


def changing(row: AttemptRow, name: str, value: object) -> Update:
    """Set an attribute of the row.

    Refused if the attempt has ended, holds something else by now, or was handed over.
    """
    return Update(
        key=attempt_key(row.job_name),
        expression="SET #name = :value",
        values={":value": attribute(value), ":reserved": row.reserved_usd, **submission(row)},
        names={"#name": name, **END_NAME},
        condition=f"{NOT_ENDED} AND reserved_usd = :reserved AND {NOT_HANDED_OVER}",
    )


def submission(row: AttemptRow) -> Mapping[str, object]:
    """The value of ``NOT_HANDED_OVER``."""
    return {":submitted": attribute(row.submitted_at)}


def attempt_key(job_name: str) -> dict[str, str]:
    return {"pk": f"{JOB_PREFIX}{job_name}", "sk": ATTEMPT}
