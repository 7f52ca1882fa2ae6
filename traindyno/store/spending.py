"""The spending of an execution and what its jobs may still cost, in its row, so that no job can exceed the cap.

A job's row and its reservation change in one transaction. With two writes, a function that is interrupted between them
and repeated would reserve twice or never settle.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal
from enum import StrEnum
from typing import Any, Self

from traindyno.aws.table import Item, Table, Update, Write
from traindyno.core.jobs.attempt import Attempt
from traindyno.store.attempts import AttemptRow, creation, holding, recording_end, removal
from traindyno.store.executions import execution_key
from traindyno.store.items import attributes_of, read_row

MICRO_USD = Decimal("0.000001")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingRow:
    """The part of an execution's item for its spending."""

    #: ``spent_usd``, plus the most that jobs in flight may cost.
    exposed_usd: Decimal = Decimal(0)
    #: What ended jobs have cost.
    spent_usd: Decimal = Decimal(0)

    def to_item(self) -> dict[str, Any]:
        return attributes_of(self)

    @classmethod
    def from_item(cls, item: Item) -> Self:
        return read_row(item, cls)


class Reservation(StrEnum):
    """``ROW_REFUSED``: the attempt's row exists already, or is not as it was read."""

    MADE = "made"
    ROW_REFUSED = "row_refused"
    NO_ROOM = "no_room"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """``spent_usd`` replaces ``released_usd``."""

    released_usd: Decimal
    spent_usd: Decimal


class Spending:
    def __init__(self, table: Table) -> None:
        self._table = table

    def reserve(self, row: AttemptRow, *, cap_usd: Decimal, also: Sequence[Write] = ()) -> Reservation:
        """Create the attempt with its ``reserved_usd``, and write ``also``, unless that exceeds the execution's cap."""
        return self._reserve(row.owner.execution_id, row.reserved_usd, cap_usd, creation(row), also)

    def withdraw(self, row: AttemptRow, *, also: Sequence[Write] = ()) -> bool:
        """Delete the attempt's row and release its reservation, because no job started; False if done before."""
        nothing = Settlement(released_usd=row.reserved_usd, spent_usd=Decimal(0))
        return not self._table.write_all([removal(row.job_name), _settling(row, nothing), *also])

    def reserve_more(self, row: AttemptRow, needed_usd: Decimal, *, cap_usd: Decimal | None) -> Reservation:
        """Reserve more for a running job: ``needed_usd`` replaces what its row holds. Without a cap, it always fits."""
        more_usd = rounded_up(needed_usd) - rounded_up(row.reserved_usd)
        return self._reserve(row.owner.execution_id, more_usd, cap_usd, holding(row, needed_usd))

    def end(self, row: AttemptRow, end: Attempt, settlement: Settlement | None) -> bool:
        """The job has ended: what it cost replaces what it might have cost. Without a settlement, that stays reserved.

        False if the attempt has ended already, or has changed since it was read.
        """
        settling = [_settling(row, settlement)] if settlement else []
        return not self._table.write_all([recording_end(row, end), *settling])

    def _reserve(
        self, execution_id: str, usd: Decimal, cap_usd: Decimal | None, row: Write, also: Sequence[Write] = ()
    ) -> Reservation:
        amount = rounded_up(usd)
        reserving = Update(key=execution_key(execution_id), expression="ADD exposed_usd :usd", values={":usd": amount})
        if cap_usd is not None:
            room = cap_usd - amount
            if room < 0:
                return Reservation.NO_ROOM
            # Without the attribute, nothing is exposed yet, and the room is known to be enough.
            condition = "attribute_not_exists(exposed_usd) OR exposed_usd <= :room"
            reserving = replace(reserving, values={":usd": amount, ":room": room}, condition=condition)
        refused = self._table.write_all([row, reserving, *also])
        if not refused:
            return Reservation.MADE
        return Reservation.ROW_REFUSED if 0 in refused else Reservation.NO_ROOM

    def read(self, execution_id: str) -> SpendingRow:
        return SpendingRow.from_item(self._table.get(execution_key(execution_id)) or {})


def _settling(row: AttemptRow, settlement: Settlement) -> Update:
    spent = rounded_up(settlement.spent_usd)
    return Update(
        key=execution_key(row.owner.execution_id),
        expression="ADD exposed_usd :less, spent_usd :spent",
        values={":less": spent - rounded_up(settlement.released_usd), ":spent": spent},
    )


def rounded_up(usd: Decimal) -> Decimal:
    return usd.quantize(MICRO_USD, rounding=ROUND_CEILING)
