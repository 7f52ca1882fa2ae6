"""Rows of deployments of trained models, which keep what each cost."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from traindyno.aws.table import Table
from traindyno.core.costs.prices import cost_usd
from traindyno.core.serving.deployment import ModelDeployment
from traindyno.core.serving.samples import Latency
from traindyno.store.items import RowUnreadable, attribute, attributes_of, read_row

PARTITION, PREFIX = "model-deployments", "deployment#"
MESSAGE_LENGTH = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentRow:
    """Times are epoch seconds. ``message``: why it was removed.

    ``checked_samples``: how many answers agree with the training job's; None before the check.
    """

    deployment: ModelDeployment
    created_at: float
    removed_at: float | None = None
    message: str | None = None
    checked_samples: int | None = None
    latency: Latency | None = None

    @property
    def is_open(self) -> bool:
        """Whether a part of it may still be billed."""
        return self.removed_at is None

    @property
    def status(self) -> str:
        """``ready``: it was in service, and its answers agreed with the training job's."""
        return "removed" if not self.is_open else "unchecked" if self.checked_samples is None else "ready"

    @property
    def ends_at(self) -> float | None:
        """From then on a sweep ends it; None: it is kept."""
        return self.deployment.ends_at(self.created_at)

    @property
    def most_usd(self) -> Decimal | None:
        return self.deployment.most_usd(self.created_at)

    def cost_so_far_usd(self, now: float) -> Decimal | None:
        """An upper bound, from creation to removal; None if the price is unknown."""
        if self.deployment.usd_per_hour is None:
            return None
        seconds = Decimal(str((self.removed_at or now) - self.created_at))
        return cost_usd(seconds, self.deployment.instance_count, self.deployment.usd_per_hour)


class DeploymentRows:
    def __init__(self, table: Table) -> None:
        self._table = table

    def create(self, row: DeploymentRow) -> DeploymentRow:
        """The row; the existing one if the call is repeated."""
        item = {**_key(row.deployment.name), **attributes_of(row)}
        if self._table.put(item, condition="attribute_not_exists(pk)"):
            return row
        return self.find(row.deployment.name) or row

    def find(self, name: str) -> DeploymentRow | None:
        item = self._table.get(_key(name))
        return read_row(item, DeploymentRow) if item else None

    def list_all(self, *, unreadable: list[Exception] | None = None) -> Iterator[DeploymentRow]:
        """All deployments by name, removed ones included. Raises RowUnreadable, or adds it to ``unreadable``."""
        values = {":pk": PARTITION, ":prefix": PREFIX}
        for item in self._table.query("pk = :pk AND begins_with(sk, :prefix)", values=values):
            try:
                yield read_row(item, DeploymentRow)
            except RowUnreadable as error:
                if unreadable is None:
                    raise
                unreadable.append(error)

    def change(self, name: str, **fields: Any) -> bool:
        """False if it was removed before: that row keeps its cost."""
        updated = self._table.update(
            _key(name),
            "SET " + ", ".join(f"{field} = :{field}" for field in fields),
            values={f":{field}": attribute(value) for field, value in fields.items()},
            condition="attribute_exists(pk) AND attribute_not_exists(removed_at)",
        )
        return updated is not None


def _key(name: str) -> dict[str, str]:
    return {"pk": PARTITION, "sk": f"{PREFIX}{name}"}
