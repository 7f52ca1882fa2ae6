"""On-demand prices from the Price List API: for training and hosting."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from traindyno.core.costs.prices import Price
from traindyno.core.errors import SuiteRefused

if TYPE_CHECKING:
    from mypy_boto3_pricing import PricingClient

SERVICE_CODE = "AmazonSageMaker"
SOURCE = "AWS Price List"
HOURLY = {"hrs", "hour", "hours"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The use of an instance in the Price List's terms: an attribute, and the end of its usage types."""

    name: str
    usage_type: str


TRAINING = Usage(name="Training", usage_type="Train")
HOSTING = Usage(name="Hosting", usage_type="Host")


def read_prices(
    pricing: "PricingClient", instance_types: Iterable[str], *, region: str, now: float, usage: Usage = TRAINING
) -> dict[str, Price]:
    """Prices by instance type, without types that have no price for the usage in the region. Raises SuiteRefused if the
    Price List has several prices for one type.
    """
    as_of = datetime.fromtimestamp(now, UTC).date().isoformat()
    found = {name: _read_price(pricing, name, region, usage) for name in dict.fromkeys(instance_types)}
    return {
        name: Price(instance_type=name, region=region, usd_per_hour=usd, as_of=as_of, source=source)
        for name, (usd, source) in found.items()
        if usd is not None
    }


def _read_price(pricing: "PricingClient", instance_type: str, region: str, usage: Usage) -> tuple[Decimal | None, str]:
    """The price with its source: the version of the local cloud's list shows that it is a snapshot."""
    wanted = {"regionCode": region, "platoinstancetype": usage.name, "instanceName": instance_type}
    pages = pricing.get_paginator("get_products").paginate(
        ServiceCode=SERVICE_CODE,
        Filters=[{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()],
    )
    products = [json.loads(text) for page in pages for text in page["PriceList"]]
    plain = [product for product in products if _is_plain_use(product, instance_type, usage)]
    hourly = {usd for product in plain for usd in _hourly_usd(product)}
    if len(hourly) > 1:
        listed = ", ".join(str(usd) for usd in sorted(hourly))
        raise SuiteRefused(
            [
                f"{instance_type} in {region}: the Price List has several {usage.name} prices, {listed} USD"
                " per hour: leave this type out, or plan with your own price (--prices)"
            ]
        )
    versions = sorted({str(product["version"]) for product in plain if "version" in product})
    return next(iter(hourly), None), " ".join((SOURCE, *versions))


def _is_plain_use(product: Mapping[str, Any], instance_type: str, usage: Usage) -> bool:
    """False for the rows of clusters, training plans and the free tier, which have the same instance name."""
    return str(product["product"]["attributes"].get("usagetype", "")).endswith(f"{usage.usage_type}:{instance_type}")


def _hourly_usd(product: Mapping[str, Any]) -> Iterator[Decimal]:
    for term in product["terms"].get("OnDemand", {}).values():
        for dimension in term["priceDimensions"].values():
            usd = Decimal(dimension["pricePerUnit"].get("USD", "0"))
            if dimension["unit"].lower() in HOURLY and usd > 0:
                yield usd
