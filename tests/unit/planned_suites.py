"""What plans are made of: prices, quotas and what earlier runs of a cell took."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from traindyno.core.costs.prices import Price
from traindyno.core.planning.history import CellHistory
from traindyno.core.planning.quotas import QuotaReading, needed_quotas
from traindyno.core.suite.suite import Suite


def price(instance_type: str, usd: str | int) -> Price:
    return Price(
        instance_type=instance_type,
        region="us-east-1",
        usd_per_hour=Decimal(usd),
        as_of="2026-11-21",
        source="test",
    )


def prices_of(usd: Mapping[str, str]) -> dict[str, Price]:
    return {name: price(name, amount) for name, amount in usd.items()}


def ample_quotas(suite: Suite) -> dict[str, QuotaReading]:
    return {
        quota.name: QuotaReading(quota=quota, applied=500_000, default=None, in_use=0)
        for quota in needed_quotas(suite)
    }


def past_cell(cell_id: str, seconds: float, **changes: Any) -> CellHistory:
    """One earlier run, of which every second was billed."""
    given = {
        "run_count": 1,
        "billable_seconds": seconds,
        "seconds": seconds,
        "is_simulated": False,
        **changes,
    }
    return CellHistory(cell_id=cell_id, **given)
