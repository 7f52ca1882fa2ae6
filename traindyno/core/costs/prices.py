"""What an instance costs by the hour, from where and as of when, and what a time on it costs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from traindyno.core.documents.converter import read_checked
from traindyno.core.documents.problems import refusal, shown
from traindyno.core.errors import Problem
from traindyno.core.instances.instance_types import close_instance_types, find_instance_type

SECONDS_PER_HOUR = 3600
PRICES_SHAPE = "region, as_of and prices"
PriceList = Mapping[str, "Price"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """On-demand training price of one instance; ``as_of`` is an ISO date, ``source`` the Price List
    or a file.
    """

    instance_type: str
    region: str
    usd_per_hour: Decimal
    as_of: str
    source: str
    currency: str = "USD"


def cost_usd(seconds: int | Decimal, instance_count: int, usd_per_hour: Decimal) -> Decimal:
    """The exact cost, which is rounded only where it is shown."""
    return Decimal(seconds) * instance_count * usd_per_hour / SECONDS_PER_HOUR


def sum_known(costs: Sequence[Decimal | None]) -> Decimal | None:
    """None without any, or if one is unknown."""
    known = [cost for cost in costs if cost is not None]
    return sum(known, Decimal(0)) if known and len(known) == len(costs) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceFile:
    """Prices from a file.

    ``prices`` has USD for one hour of one instance, by instance type. ``as_of`` is an ISO date.
    """

    region: str
    as_of: str
    prices: Mapping[str, Decimal]
    source: str | None = None


def parse_prices(document: Mapping[str, Any], *, source: str) -> dict[str, Price]:
    """Price of each instance type.

    ``source`` is the file's name, for a file that names no source itself.
    """
    given = read_checked(document, PriceFile, list(_problems(document)))
    return {
        name: Price(
            instance_type=name,
            region=given.region,
            usd_per_hour=usd_per_hour,
            as_of=given.as_of,
            source=given.source or source,
        )
        for name, usd_per_hour in given.prices.items()
    }


def _problems(document: Mapping[str, Any]) -> Iterator[Problem]:
    """Problems of content; the converter reports problems of form."""
    as_of = document.get("as_of")
    prices = document.get("prices")
    if isinstance(as_of, str) and not _is_date(as_of):
        yield Problem(
            path="as_of", message=f"got {shown(as_of)}, expected a date such as 2026-11-21"
        )
    if prices == {}:
        yield Problem(
            path="prices", message="got none, expected at least one instance type with its price"
        )
    for name, usd_per_hour in prices.items() if isinstance(prices, Mapping) else ():
        if find_instance_type(str(name)) is None:
            message = refusal(
                f"got {shown(name)}", "an instance type", close_instance_types(str(name))
            )
            yield Problem(path=f"prices.{name}", message=message)
        if isinstance(usd_per_hour, int | float) and usd_per_hour <= 0:
            yield Problem(
                path=f"prices.{name}", message=f"got {usd_per_hour}, expected USD per hour above 0"
            )


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
