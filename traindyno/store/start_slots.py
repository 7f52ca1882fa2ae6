"""Two items of the lab: the times at which functions may call CreateTrainingJob, and the sweep's
lease.
"""

from collections.abc import Mapping
from typing import Any

from traindyno.aws.table import Table
from traindyno.store.items import attribute

LEASE_KEY = {"pk": "sweep-lease#ReconcileRuns", "sk": "lab"}
RELEASED_AT = 0.0


class SweepLease:
    def __init__(self, table: Table) -> None:
        self._table = table

    def take(self, holder: str, *, now: float, seconds: float) -> bool:
        """Whether ``holder`` has the lease now: False while another one's has not expired."""
        taken = self._table.update(
            LEASE_KEY,
            "SET holder = :holder, expires_at = :end",
            values={
                ":holder": holder,
                ":end": attribute(float(now + seconds)),
                ":now": attribute(float(now)),
            },
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

    def _change(self, holder: str, expression: str, values: Mapping[str, Any]) -> bool:
        changed = self._table.update(
            LEASE_KEY,
            expression,
            values={":holder": holder, **values},
            condition="holder = :holder",
        )
        return changed is not None


KEY = {"pk": "start-slots#CreateTrainingJob", "sk": "lab"}


class StartSlots:
    def __init__(self, table: Table) -> None:
        self._table = table

    def reserve(self, *, now: float, seconds_between: float) -> float:
        """When to send the request, in epoch seconds.

        Each call gets another slot, ``seconds_between`` apart.
        """
        while True:
            queued = self._advance(
                "next_at + :between", "next_at > :now", now=now, seconds_between=seconds_between
            )
            if queued is not None:
                return queued - seconds_between
            is_free = "attribute_not_exists(next_at) OR next_at <= :now"
            if (
                self._advance(":now + :between", is_free, now=now, seconds_between=seconds_between)
                is not None
            ):
                return now

    def free(self, *, now: float) -> None:
        """No job needs the reserved slots: the next slot is now."""
        self._table.update(KEY, "SET next_at = :now", values={":now": attribute(float(now))})

    def _advance(
        self, value: str, condition: str, *, now: float, seconds_between: float
    ) -> float | None:
        """The next free slot, in epoch seconds; None if the condition doesn't hold."""
        item = self._table.update(
            KEY,
            f"SET next_at = {value}",
            values={":now": attribute(float(now)), ":between": attribute(float(seconds_between))},
            condition=condition,
        )
        return float(item["next_at"]) if item else None
