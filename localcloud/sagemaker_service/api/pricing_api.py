"""Answers GetProducts of the Price List from a snapshot of prices, which each answer names as its
source.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from importlib.resources import files
from typing import Any

from localcloud.environment import REGION
from localcloud.sagemaker_service.api_error import ApiError, Operation, page_of
from localcloud.sagemaker_service.instance_table import LOCAL_TYPES

SERVICE_CODE = "AmazonSageMaker"
INVALID_TOKEN = ApiError("InvalidNextTokenException", "The pagination token is invalid")
# The attribute ``platoinstancetype`` says what an instance is used for; the values are its names in
# a usage type.
TRAINING = "Training"
USAGE_NAMES = {TRAINING: "Train", "Hosting": "Host"}
LOCAL_USD_PER_HOUR = Decimal("0.10")
Product = dict[str, Any]


class PricingApi:
    def __init__(self, given: Mapping[str, Decimal]) -> None:
        """Makes the products from the snapshot and the ``given`` prices, which replace its own.

        Prices are USD per hour of training by instance type.
        """
        self._products = list(_products(given))

    def operations(self) -> dict[str, Operation]:
        return {"GetProducts": self._get_products}

    def _get_products(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        if request["ServiceCode"] != SERVICE_CODE:
            raise ApiError(
                "NotFoundException",
                f"{request['ServiceCode']}: only {SERVICE_CODE} has prices here",
            )
        products = [
            json.dumps(product)
            for product in self._products
            if all(
                _is_match(product["product"]["attributes"], condition)
                for condition in request.get("Filters", ())
            )
        ]
        page = page_of(products, request, member="PriceList", invalid_token=INVALID_TOKEN)
        return {**page, "FormatVersion": "aws_v1"}


def _is_match(attributes: Mapping[str, str], condition: Mapping[str, str]) -> bool:
    if condition["Type"] != "TERM_MATCH":
        raise ApiError(
            "InvalidParameterException",
            f"filter type {condition['Type']}: TERM_MATCH is offered here",
        )
    return attributes.get(condition["Field"], "").lower() == condition["Value"].lower()


def read_snapshot() -> tuple[str, dict[str, tuple[Decimal, str]]]:
    """The snapshot's date, and USD per hour and source of each instance type."""
    snapshot = json.loads(
        files("localcloud.sagemaker_service.data")
        .joinpath("price_snapshot.json")
        .read_text("utf-8")
    )
    rows = {
        name: (Decimal(row["usd_per_hour"]), row["source"])
        for name, row in snapshot["rows"].items()
    }
    return snapshot["as_of"], rows


def _products(given: Mapping[str, Decimal]) -> Iterator[Product]:
    as_of, training = read_snapshot()
    nominal = (LOCAL_USD_PER_HOUR, "nominal price of this machine")
    training |= dict.fromkeys(LOCAL_TYPES, nominal)
    training |= {
        name: (usd_per_hour, "given to the local service in a file")
        for name, usd_per_hour in given.items()
    }
    hosting = dict.fromkeys(LOCAL_TYPES, nominal)
    for use, prices in ((TRAINING, training), ("Hosting", hosting)):
        for name, (usd_per_hour, source) in sorted(prices.items()):
            yield _product(name, usd_per_hour, use=use, as_of=as_of, source=source)


def _product(
    instance_type: str, usd_per_hour: Decimal, *, use: str, as_of: str, source: str
) -> Product:
    """A product with the attributes that callers read, and one that says where its price is from.

    Args:
        instance_type: The type whose hour the product sells.
        usd_per_hour: Its price.
        use: What the instance is used for, as AWS calls it.
        as_of: The date of the price.
        source: Where the price is from.
    """
    usage_type = f"USE1-{USAGE_NAMES[use]}:{instance_type}"
    term = hashlib.sha256(usage_type.encode()).hexdigest()[:16].upper()
    dimension = {"unit": "Hrs", "pricePerUnit": {"USD": f"{usd_per_hour:.10f}"}}
    attributes = {
        "regionCode": REGION,
        "instanceName": instance_type,
        "platoinstancetype": use,
        "usagetype": usage_type,
        "localSnapshot": f"as of {as_of}: {source}",
    }
    return {
        "product": {"productFamily": "ML Instance", "attributes": attributes},
        "serviceCode": SERVICE_CODE,
        "terms": {"OnDemand": {term: {"priceDimensions": {f"{term}.1": dimension}}}},
        "version": f"local-snapshot-{as_of}",
    }
