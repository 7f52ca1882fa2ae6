"""The lease of the sweep: one DynamoDB item of the lab that names the sweep that runs, and when it expires."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from traindyno.aws.table import Item, Table
from traindyno.store.items import attribute, attributes_of, read_row

KEY = {"pk": "sweep-lease#ReconcileRuns", "sk": "lab"}
RELEASED_AT = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepLeaseRow:
    """``expires_at`` is in epoch seconds."""

    holder: str
    expires_at: float

    def to_item(self) -> dict[str, Any]:
        return {**KEY, **attributes_of(self)}

    @classmethod
    def from_item(cls, item: Item) -> Self:
        return read_row(item, cls)


class SweepLease:
    def __init__(self, table: Table) -> None:
        self._table = table

    def take(self, holder: str, *, now: float, seconds: float) -> bool:
        """Whether ``holder`` has the lease now: False while another one's has not expired."""
        taken = self._table.update(
            KEY,
            "SET holder = :holder, expires_at = :end",
            values={":holder": holder, ":end": attribute(float(now + seconds)), ":now": attribute(float(now))},
            condition="attribute_not_exists(expires_at) OR expires_at <= :now",
        )
        return taken is not None

    def renew(self, holder: str, *, now: float, seconds: float) -> bool:
        """False if another one took the lease after it had expired."""
        end = {":end": attribute(float(now + seconds))}
        return self._change(holder, "SET expires_at = :end", end)

    def release(self, holder: str) -> None:
        """Nothing changes if another one holds the lease."""
        self._change(holder, "SET expires_at = :released", {":released": attribute(RELEASED_AT)})

    def read(self) -> SweepLeaseRow | None:
        item = self._table.get(KEY)
        return SweepLeaseRow.from_item(item) if item else None

    def _change(self, holder: str, expression: str, values: Mapping[str, Any]) -> bool:
        changed = self._table.update(
            KEY, expression, values={":holder": holder, **values}, condition="holder = :holder"
        )
        return changed is not None
