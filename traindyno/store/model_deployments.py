"""Rows of model deployments: the deployed model, its status, the check of its answers and its removal."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any, Self

from traindyno.aws.table import Item, Table
from traindyno.core.costs.prices import cost_usd
from traindyno.core.serving.deployment import ModelDeployment
from traindyno.core.serving.latency import Latency
from traindyno.core.serving.lifetime import end_reason, ends_at, life_seconds, most_usd
from traindyno.store.items import RowUnreadable, attribute, attributes_of, read_row

PARTITION, PREFIX = "model-deployments", "deployment#"
# Characters of a row's message that are kept.
MESSAGE_LENGTH = 4000


class DeploymentStatus(StrEnum):
    """``ready``: an endpoint in service, or a completed transform job. ``removed``: all its resources are deleted."""

    CREATING = "creating"
    READY = "ready"
    FAILED = "failed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentRow:
    """A model's deployment. Times are epoch seconds."""

    deployment: ModelDeployment
    status: DeploymentStatus
    created_at: float
    #: The token of the task that waits until the deployment is ready.
    token: str
    ready_at: float | None = None
    removed_at: float | None = None
    #: Why it failed.
    message: str | None = None
    #: The number of answers that agree with the training job's; None before the check.
    checked_samples: int | None = None
    checked_at: float | None = None
    latency: Latency | None = None
    #: The billed time of all instances of the transform jobs together, that of the check included.
    billed_seconds: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether a part of it may still be billed."""
        return self.removed_at is None

    @property
    def is_checked_by_job(self) -> bool:
        """Whether its step is the transform job that answers the evaluation samples."""
        return not self.deployment.is_endpoint and self.checked_samples is None

    @property
    def awaits_sagemaker(self) -> bool:
        """Whether a task waits for its endpoint or transform job, or has lost the answer."""
        return self.is_open and (self.checked_samples is None or not self.deployment.is_endpoint)

    @property
    def step_began_at(self) -> float:
        """When its endpoint or latest transform job was requested."""
        return self.checked_at or self.created_at

    @property
    def ends_at(self) -> float | None:
        """From then on a sweep ends it; None: it is kept."""
        return ends_at(self.deployment, self.created_at)

    @property
    def end_reason(self) -> str:
        return end_reason(self.deployment, self.created_at)

    @property
    def most_usd(self) -> Decimal | None:
        """The cost of its longest life; None if it is kept, and if its price is unknown."""
        return most_usd(self.deployment, self.created_at)

    def is_expired(self, now: float) -> bool:
        """Whether its time or its amount is used up."""
        seconds = life_seconds(self.deployment, self.created_at)
        age = Decimal(str(now)) - Decimal(str(self.created_at))
        return self.is_open and seconds is not None and age >= seconds

    def cost_so_far_usd(self, now: float) -> Decimal | None:
        """The billed cost of a transform job; else an upper bound, from creation to removal; None if unknown."""
        usd_per_hour = self.deployment.usd_per_hour
        if usd_per_hour is None:
            return None
        if self.billed_seconds is not None:
            return cost_usd(Decimal(str(self.billed_seconds)), 1, usd_per_hour)
        seconds = Decimal(str((self.removed_at or now) - self.created_at))
        return cost_usd(seconds, self.deployment.instance_count, usd_per_hour)

    def to_item(self) -> dict[str, Any]:
        return {**_key(self.deployment.name), **attributes_of(self)}

    @classmethod
    def from_item(cls, item: Item) -> Self:
        return read_row(item, cls)


class DeploymentRows:
    def __init__(self, table: Table) -> None:
        self._table = table

    def create(self, row: DeploymentRow) -> bool:
        """False if the deployment has its row already; its task's token is then replaced while it is created."""
        if self._table.put(row.to_item(), condition="attribute_not_exists(pk)"):
            return True
        self._table.update(
            _key(row.deployment.name),
            "SET #token = :token",
            values={":token": row.token, ":creating": DeploymentStatus.CREATING.value},
            names={"#token": "token", "#status": "status"},
            condition="#status = :creating",
        )
        return False

    def find(self, name: str) -> DeploymentRow | None:
        item = self._table.get(_key(name))
        return DeploymentRow.from_item(item) if item else None

    def list_all(self, *, unreadable: list[Exception] | None = None) -> Iterator[DeploymentRow]:
        """All deployments by name, removed ones included. Raises RowUnreadable, or adds it to ``unreadable``."""
        values = {":pk": PARTITION, ":prefix": PREFIX}
        for item in self._table.query("pk = :pk AND begins_with(sk, :prefix)", values=values):
            try:
                yield DeploymentRow.from_item(item)
            except RowUnreadable as error:
                if unreadable is None:
                    raise
                unreadable.append(error)

    def settle(
        self, name: str, status: DeploymentStatus, *, now: float, message: str | None, billed_seconds: float | None
    ) -> bool:
        """Change the status from creating to ready or failed; False if that has happened already."""
        given = {"message": message, "billed_seconds": billed_seconds}
        known = {field: value for field, value in given.items() if value is not None}
        assignments = [f"{field} = :{field}" for field in known]
        updated = self._table.update(
            _key(name),
            ", ".join(["SET #status = :status", "ready_at = :now", *assignments]),
            values={
                ":status": status.value,
                ":now": attribute(now),
                ":creating": DeploymentStatus.CREATING.value,
                **{f":{field}": attribute(value) for field, value in known.items()},
            },
            names={"#status": "status"},
            condition="#status = :creating",
        )
        return updated is not None

    def record_check(self, name: str, *, now: float, checked_samples: int, latency: Latency | None) -> None:
        measured = {":latency": attribute(latency)} if latency else {}
        self._table.update(
            _key(name),
            "SET checked_samples = :checked, checked_at = :now" + (", latency = :latency" if latency else ""),
            values={":checked": checked_samples, ":now": attribute(now), **measured},
            condition="attribute_exists(pk)",
        )

    def remove(self, name: str, *, now: float, message: str | None = None) -> bool:
        """False if it was already removed. The row is kept, because it contains the cost."""
        updated = self._table.update(
            _key(name),
            "SET #status = :removed, removed_at = :now" + (", message = :message" if message else ""),
            values={
                ":removed": DeploymentStatus.REMOVED.value,
                ":now": attribute(now),
                **({":message": message} if message else {}),
            },
            names={"#status": "status"},
            condition="attribute_exists(pk) AND attribute_not_exists(removed_at)",
        )
        return updated is not None


def _key(name: str) -> dict[str, str]:
    return {"pk": PARTITION, "sk": f"{PREFIX}{name}"}
