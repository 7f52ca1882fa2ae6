"""The prices and quotas of a suite's instance types in several regions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import ceil

from traindyno.core.costs.prices import Price
from traindyno.core.planning.quotas import QuotaReading
from traindyno.core.suite.suite import Cell, Suite

PLAN_HOURS = 24  # SageMaker sells training plans by the day
PLAN_INSTANCES = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOffer:
    """A training plan that SageMaker offers. ``starts_at``: epoch seconds; ``usd_per_hour``: of one instance."""

    starts_at: float
    instance_count: int
    hours: int
    usd_per_hour: Decimal
    zone: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferSearch:
    """``offer`` is the earliest one; None with a ``reason`` if there is none or the request failed."""

    offer: PlanOffer | None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionalType:
    """One instance type in one region. ``largest``: instances of the suite's largest job of this type. ``price`` is
    None if the Price List has none: the region does not offer the type for training. ``on_demand`` and ``spot`` are
    quotas; None with a ``quota_problem`` if they could not be read.
    """

    region: str
    instance_type: str
    largest: int
    price: Price | None
    on_demand: QuotaReading | None
    spot: QuotaReading | None
    plan: OfferSearch
    quota_problem: str | None = None

    @property
    def fits(self) -> bool | None:
        """Whether the account's on-demand quota allows the largest job; None if that is unknown."""
        available = self.on_demand.available if self.on_demand else None
        return None if available is None else available >= self.largest


def largest_jobs(cells: Sequence[Cell]) -> Mapping[str, int]:
    """Instance type → its largest job. This machine's own types are left out: no region has them."""
    largest: dict[str, int] = {}
    for cell in cells:
        name, count = cell.settings.instance, cell.settings.instance_count
        if name.startswith("ml."):
            largest[name] = max(count, largest.get(name, 0))
    return largest


def plan_size(largest: int) -> int | None:
    """Instances of the smallest training plan that holds the job; None if no plan is that large."""
    return next((count for count in PLAN_INSTANCES if count >= largest), None)


def plan_hours(suite: Suite) -> int:
    """The suite's longest time, rounded up to whole days."""
    return max(PLAN_HOURS, ceil(suite.limits.max_hours / PLAN_HOURS) * PLAN_HOURS)
