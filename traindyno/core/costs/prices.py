"""What an instance costs by the hour, from where and as of when, and what a time on it costs."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """On-demand training price of one instance; ``as_of`` is an ISO date, ``source`` the Price List or a file."""

    instance_type: str
    region: str
    usd_per_hour: Decimal
    as_of: str
    source: str
    currency: str = "USD"


PriceList = Mapping[str, Price]


def cost_usd(seconds: int | Decimal, instance_count: int, usd_per_hour: Decimal) -> Decimal:
    """The exact cost: only what is shown is rounded."""
    return Decimal(seconds) * instance_count * usd_per_hour / SECONDS_PER_HOUR
