"""SageMaker's offers of training plans, from its answer to a search."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from traindyno.core.planning.regions import PlanOffer

CURRENCY = "USD"


def read_offers(rows: Sequence[Mapping[str, Any]], *, instance_count: int, hours: int) -> list[PlanOffer]:
    """The earliest first. ``instance_count`` and ``hours`` are the requested ones."""
    offers = [found for row in rows if (found := _read(row, instance_count, hours))]
    return sorted(offers, key=lambda offer: offer.starts_at)


def _read(row: Mapping[str, Any], instance_count: int, hours: int) -> PlanOffer | None:
    """None for an offer in another currency or without a time to start."""
    capacity: Mapping[str, Any] = next(iter(row.get("ReservedCapacityOfferings", ())), {})
    starts, count = capacity.get("StartTime"), capacity.get("InstanceCount", instance_count)
    duration = int(row.get("DurationHours", hours))
    if row.get("CurrencyCode", CURRENCY) != CURRENCY or starts is None or not count * duration:
        return None
    return PlanOffer(
        starts_at=starts.timestamp(),
        instance_count=count,
        hours=duration,
        usd_per_hour=Decimal(row["UpfrontFee"]) / (count * duration),
        zone=capacity.get("AvailabilityZone"),
    )
