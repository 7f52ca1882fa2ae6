"""On-demand prices from the Price List API: for training and hosting."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from traindyno.aws import clients
from traindyno.core.costs.prices import Price
from traindyno.core.errors import SuiteRefused

if TYPE_CHECKING:
    from mypy_boto3_pricing import PricingClient

SERVICE_CODE = "AmazonSageMaker"
SOURCE = "AWS Price List"
HOURLY = {"hrs", "hour", "hours"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The use of an instance in the Price List's terms: an attribute, and the end of its usage
    types.
    """

    name: str
    usage_type: str


TRAINING = Usage(name="Training", usage_type="Train")
HOSTING = Usage(name="Hosting", usage_type="Host")


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceSource:
    """Where a region's prices come from: the Price List, now.

    All that reads prices from a service uses it.
    """

    region: str
    now: float = field(default_factory=time.time)
    pricing: "PricingClient | None" = None

    def read(self, instance_types: Iterable[str], usage: Usage = TRAINING) -> dict[str, Price]:
        """Prices by instance type, without types that have no price for the usage.

        Raises SuiteRefused if the Price List has several prices for one type.
        """
        pricing = self.pricing or clients.pricing()
        as_of = datetime.fromtimestamp(self.now, UTC).date().isoformat()
        prices = {
            name: _read_price(pricing, name, self.region, usage)
            for name in dict.fromkeys(instance_types)
        }
        return {
            name: Price(
                instance_type=name, region=self.region, usd_per_hour=usd, as_of=as_of, source=source
            )
            for name, (usd, source) in prices.items()
            if usd is not None
        }


def _read_price(
    pricing: "PricingClient", instance_type: str, region: str, usage: Usage
) -> tuple[Decimal | None, str]:
    """The price with its source: the version of the local cloud's list shows that it is a
    snapshot.
    """
    wanted = {"regionCode": region, "platoinstancetype": usage.name, "instanceName": instance_type}
    pages = pricing.get_paginator("get_products").paginate(
        ServiceCode=SERVICE_CODE,
        Filters=[
            {"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in wanted.items()
        ],
    )
    products = [json.loads(text) for page in pages for text in page["PriceList"]]
    # Clusters, training plans and the free tier have rows with the same instance name.
    ending = f"{usage.usage_type}:{instance_type}"
    plain = [
        product
        for product in products
        if str(product["product"]["attributes"].get("usagetype", "")).endswith(ending)
    ]
    hourly = {usd for product in plain for usd in _hourly_usd(product)}
    if len(hourly) > 1:
        listed = ", ".join(str(usd) for usd in sorted(hourly))
        raise SuiteRefused(
            [
                f"{instance_type} in {region}: the Price List has several {usage.name} prices, "
                f"{listed} USD per hour: leave this type out, or plan with your own price "
                "(--prices)"
            ]
        )
    versions = sorted({str(product["version"]) for product in plain if "version" in product})
    return next(iter(hourly), None), " ".join((SOURCE, *versions))


def _hourly_usd(product: Mapping[str, Any]) -> Iterator[Decimal]:
    for term in product["terms"].get("OnDemand", {}).values():
        for dimension in term["priceDimensions"].values():
            usd = Decimal(dimension["pricePerUnit"].get("USD", "0"))
            if dimension["unit"].lower() in HOURLY and usd > 0:
                yield usd
