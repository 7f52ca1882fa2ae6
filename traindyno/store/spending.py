"""What an execution has spent and may yet spend, kept in its row so that no job can start past the cap."""

from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Any, Self

from traindyno.aws.table import Item, Table
from traindyno.store.executions import execution_key
from traindyno.store.items import attributes_of, read_row

MICRO_USD = Decimal("0.000001")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingRow:
    """The part of an execution's item that counts money.

    ``exposed_usd`` is ``spent_usd`` plus the most that jobs in flight may cost. ``pools`` names the ended jobs whose
    instances may still be kept warm: the most that this may cost stays in ``exposed_usd``.
    """

    exposed_usd: Decimal = Decimal(0)
    spent_usd: Decimal = Decimal(0)
    pools: frozenset[str] = frozenset()

    def to_item(self) -> dict[str, Any]:
        return attributes_of(self)

    @classmethod
    def from_item(cls, item: Item) -> Self:
        return read_row(item, cls)


class Spending:
    def __init__(self, table: Table) -> None:
        self._table = table

    def reserve(self, execution_id: str, usd: Decimal, *, cap_usd: Decimal) -> bool:
        """False if this job's worst case would take the execution past its cap, the first job's too."""
        amount = _rounded_up(usd)
        room = cap_usd - amount
        if room < 0:
            return False
        updated = self._table.update(
            execution_key(execution_id),
            "ADD exposed_usd :usd",
            values={":usd": amount, ":room": room},
            # Without the attribute, nothing is exposed yet, and the room is known to be enough.
            condition="attribute_not_exists(exposed_usd) OR exposed_usd <= :room",
        )
        return updated is not None

    def settle(
        self, execution_id: str, *, reserved_usd: Decimal, spent_usd: Decimal, pool_of: str | None = None
    ) -> None:
        """The job has ended: what it cost replaces what it might have cost.

        ``pool_of``: the job keeps its instances warm; ``reserved_usd`` is then without what that may cost.
        """
        values = _difference(reserved_usd, spent_usd)
        pool = {":pool": {pool_of}} if pool_of else {}
        self._table.update(
            execution_key(execution_id),
            "ADD exposed_usd :less, spent_usd :spent" + (", pools :pool" if pool_of else ""),
            values={**values, **pool},
        )

    def settle_pool(self, execution_id: str, job_name: str, *, reserved_usd: Decimal, spent_usd: Decimal) -> bool:
        """The job's instances are no longer kept warm. Exactly once: False if that is settled already."""
        updated = self._table.update(
            execution_key(execution_id),
            "ADD exposed_usd :less, spent_usd :spent DELETE pools :pool",
            values={**_difference(reserved_usd, spent_usd), ":pool": {job_name}, ":job": job_name},
            condition="contains(pools, :job)",
        )
        return updated is not None

    def read(self, execution_id: str) -> SpendingRow:
        return SpendingRow.from_item(self._table.get(execution_key(execution_id)) or {})


def _difference(reserved_usd: Decimal, spent_usd: Decimal) -> dict[str, Decimal]:
    spent = _rounded_up(spent_usd)
    return {":less": spent - _rounded_up(reserved_usd), ":spent": spent}


def _rounded_up(usd: Decimal) -> Decimal:
    return usd.quantize(MICRO_USD, rounding=ROUND_CEILING)
