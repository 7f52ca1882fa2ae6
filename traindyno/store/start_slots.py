"""One item of the lab: the times at which functions may call CreateTrainingJob."""

from traindyno.aws.table import Table
from traindyno.store.items import attribute

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
