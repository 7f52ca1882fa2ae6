"""The spending of an execution and what its jobs may still cost, in its row, so that no job can
exceed the cap.

A job's row and its reservation change in one transaction. With two writes, a function that is
interrupted between them and repeated would reserve twice or never settle.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from enum import StrEnum

from traindyno.aws.table import Delete, Put, Table, Update, Write
from traindyno.core.jobs.attempt import Attempt
from traindyno.store.attempts import (
    NOT_HANDED_OVER,
    AttemptRow,
    attempt_key,
    changing,
    submission,
)
from traindyno.store.executions import IS_STOPPING, ExecutionRow, execution_key
from traindyno.store.items import attributes_of, read_row

MICRO_USD = Decimal("0.000001")
# Without the attribute, nothing is exposed yet, and the room is known to be enough.
HAS_ROOM = "(attribute_not_exists(exposed_usd) OR exposed_usd <= :room)"
MAY_START = f"(attribute_not_exists({IS_STOPPING}) OR {IS_STOPPING} = :no)"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingRow:
    """The part of an execution's item for its spending."""

    #: ``spent_usd``, plus the most that jobs in flight may cost.
    exposed_usd: Decimal = Decimal(0)
    #: What ended jobs have cost.
    spent_usd: Decimal = Decimal(0)


class Reservation(StrEnum):
    """Outcome of a reservation.

    ``ROW_REFUSED``: the attempt's row exists already, or is not as it was read. ``STOPPING``: no
    further job of the execution may start.
    """

    MADE = "made"
    ROW_REFUSED = "row_refused"
    NO_ROOM = "no_room"
    STOPPING = "stopping"


class Spending:
    def __init__(self, table: Table) -> None:
        self._table = table

    def reserve(
        self, row: AttemptRow, *, cap_usd: Decimal, also: Sequence[Write] = ()
    ) -> Reservation:
        """Create the attempt with its ``reserved_usd``, and write ``also``, unless that exceeds the
        execution's cap or the execution is being stopped.
        """
        creation = Put(item=row.to_item(), condition="attribute_not_exists(pk)")
        execution_id = row.owner.execution_id
        made = self._reserve(execution_id, row.reserved_usd, cap_usd, creation, also, is_start=True)
        key = execution_key(execution_id)
        if made is Reservation.NO_ROOM and (self._table.get(key) or {}).get(IS_STOPPING):
            return Reservation.STOPPING
        return made

    def take_over(self, row: ExecutionRow, spending: SpendingRow) -> bool:
        """Create the row of an execution that continues another one, with the ``spending`` of that
        one, which starts no further job; safe to repeat. False if it has spent more since, or
        another execution continues it.
        """
        creation = Put(
            item={**row.to_item(), **attributes_of(spending)},
            condition="attribute_not_exists(pk)",
        )
        closing = Update(
            key=execution_key(str(row.continues)),
            expression=f"SET continued_by = :name, {IS_STOPPING} = :yes",
            values={":name": row.execution_id, ":yes": True, ":room": spending.exposed_usd},
            condition=f"attribute_not_exists(continued_by) AND {HAS_ROOM}",
        )
        refused = self._table.write_all([creation, closing])
        return not refused or 0 in refused

    def withdraw(self, row: AttemptRow, *, also: Sequence[Write] = ()) -> bool:
        """Delete the attempt's row and release its reservation, because no job started; False if
        done before, or if another task has taken the attempt over and starts its job.
        """
        key = attempt_key(row.job_name)
        removal = Delete(key=key, condition=NOT_HANDED_OVER, values=submission(row))
        return not self._table.write_all([removal, _settling(row, Decimal(0)), *also])

    def reserve_more(
        self, row: AttemptRow, needed_usd: Decimal, *, cap_usd: Decimal | None
    ) -> Reservation:
        """Reserve more for a running job: ``needed_usd`` replaces what its row holds.

        Without a cap, it always fits.
        """
        more_usd = rounded_up(needed_usd) - rounded_up(row.reserved_usd)
        return self._reserve(
            row.owner.execution_id, more_usd, cap_usd, changing(row, "reserved_usd", needed_usd)
        )

    def end(self, row: AttemptRow, end: Attempt, spent_usd: Decimal | None) -> bool:
        """The job has ended: what it cost replaces what it might have cost.

        Of an unknown cost, that stays reserved.

        False if the attempt has ended already, or has changed since it was read.
        """
        settling = [] if spent_usd is None else [_settling(row, spent_usd)]
        return not self._table.write_all([changing(row, "end", end), *settling])

    def _reserve(
        self,
        execution_id: str,
        usd: Decimal,
        cap_usd: Decimal | None,
        row: Write,
        also: Sequence[Write] = (),
        *,
        is_start: bool = False,
    ) -> Reservation:
        amount = rounded_up(usd)
        values: dict[str, Decimal | bool] = {":usd": amount}
        conditions = []
        if cap_usd is not None:
            room = cap_usd - amount
            if room < 0:
                return Reservation.NO_ROOM
            values[":room"] = room
            conditions.append(HAS_ROOM)
        if is_start:
            values[":no"] = False
            conditions.append(MAY_START)
        reserving = Update(
            key=execution_key(execution_id),
            expression="ADD exposed_usd :usd",
            values=values,
            condition=" AND ".join(conditions) or None,
        )
        refused = self._table.write_all([row, reserving, *also])
        if not refused:
            return Reservation.MADE
        return Reservation.ROW_REFUSED if 0 in refused else Reservation.NO_ROOM

    def read(self, execution_id: str) -> SpendingRow:
        return read_row(self._table.get(execution_key(execution_id)) or {}, SpendingRow)


def _settling(row: AttemptRow, spent_usd: Decimal) -> Update:
    """Update that replaces the row's reservation by ``spent_usd``."""
    spent = rounded_up(spent_usd)
    return Update(
        key=execution_key(row.owner.execution_id),
        expression="ADD exposed_usd :less, spent_usd :spent",
        values={":less": spent - rounded_up(row.reserved_usd), ":spent": spent},
    )


def rounded_up(usd: Decimal) -> Decimal:
    return usd.quantize(MICRO_USD, rounding=ROUND_CEILING)
