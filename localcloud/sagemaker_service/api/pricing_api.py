"""Answers the Price List's operations from a snapshot of prices, which each answer names as its source."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from importlib.resources import files
from typing import Any

from localcloud.sagemaker_service.api_error import ApiError, Operation, page_of
from localcloud.sagemaker_service.instance_table import LOCAL_TYPES

SERVICE_CODE = "AmazonSageMaker"
OFFER_TERM_CODE = "JRTCKXETXF"
RATE_CODE = "6YS6EN2CT7"
INVALID_TOKEN = ApiError("InvalidNextTokenException", "The pagination token is invalid")
USAGE_PREFIXES = {
    "us-east-1": "USE1",
    "us-west-2": "USW2",
    "us-east-2": "USE2",
    "eu-west-1": "EU",
    "eu-central-1": "EUC1",
}
# The attribute ``platoinstancetype`` says what an instance is used for; the values are its names in a usage type.
TRAINING = "Training"
USAGE_NAMES = {TRAINING: "Train", "Hosting": "Host"}
MATCHES: dict[str, Callable[[str, str], bool]] = {
    "TERM_MATCH": lambda found, asked: found.lower() == asked.lower(),
    "EQUALS": lambda found, asked: found == asked,
    "CONTAINS": lambda found, asked: asked in found,
    "ANY_OF": lambda found, asked: found in asked.split(","),
    "NONE_OF": lambda found, asked: found not in asked.split(","),
}
GIVEN_AS_OF = "2026-11-21"
Product = dict[str, Any]


class PricingApi:
    def __init__(self, *, region: str, local_usd_per_hour: Decimal, given: Mapping[str, Decimal] | None = None) -> None:
        """``given`` has USD per hour of training by instance type; it replaces the snapshot's prices."""
        given = given or {}
        replaced = {(name, TRAINING) for name in given}
        snapshot = [(_attributes(product), product) for product in _snapshot_products(region, local_usd_per_hour)]
        self._products = [
            product
            for found, product in snapshot
            if (found["instanceName"], found["platoinstancetype"]) not in replaced
        ]
        source = "given to the local service in a file"
        self._products += [
            _product(name, region, usd_per_hour, use=TRAINING, as_of=GIVEN_AS_OF, source=source)
            for name, usd_per_hour in sorted(given.items())
        ]

    def operations(self) -> dict[str, Operation]:
        return {
            "DescribeServices": self._describe_services,
            "GetAttributeValues": self._get_attribute_values,
            "GetProducts": self._get_products,
        }

    def _describe_services(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        _check_service(request.get("ServiceCode", SERVICE_CODE))
        names = sorted({name for product in self._products for name in _attributes(product)})
        return {"Services": [{"ServiceCode": SERVICE_CODE, "AttributeNames": names}], "FormatVersion": "aws_v1"}

    def _get_attribute_values(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        _check_service(request["ServiceCode"])
        name = request["AttributeName"]
        values = sorted({_attributes(product)[name] for product in self._products if name in _attributes(product)})
        rows = [{"Value": value} for value in values]
        return page_of(rows, request, member="AttributeValues", default_size=100, invalid_token=INVALID_TOKEN)

    def _get_products(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        _check_service(request["ServiceCode"])
        filters = request.get("Filters", ())
        found = [
            json.dumps(product)
            for product in self._products
            if all(_is_match(_attributes(product), condition) for condition in filters)
        ]
        page = page_of(found, request, member="PriceList", default_size=100, invalid_token=INVALID_TOKEN)
        return {**page, "FormatVersion": "aws_v1"}


def _is_match(attributes: Mapping[str, str], condition: Mapping[str, str]) -> bool:
    found = attributes.get(condition["Field"], "")
    return MATCHES[condition["Type"]](found, condition["Value"])


def _attributes(product: Product) -> dict[str, str]:
    """The attributes that filters use: the product's own, and its family."""
    return {**product["product"]["attributes"], "productFamily": product["product"]["productFamily"]}


def _check_service(code: str) -> None:
    if code != SERVICE_CODE:
        raise ApiError(
            "NotFoundException", f"{code} has no prices here; this local service has those of {SERVICE_CODE}"
        )


def _snapshot_products(region: str, local_usd_per_hour: Decimal) -> Iterator[Product]:
    snapshot = json.loads(files("localcloud.sagemaker_service.data").joinpath("price_snapshot.json").read_text("utf-8"))
    as_of = snapshot["as_of"]
    for instance_type, row in snapshot["rows"].items():
        usd_per_hour = Decimal(row["usd_per_hour"])
        yield _product(instance_type, region, usd_per_hour, use=TRAINING, as_of=as_of, source=row["source"])
    for instance_type in sorted(LOCAL_TYPES):
        source = "nominal price of this machine, a setting of the local service"
        for use in USAGE_NAMES:
            yield _product(instance_type, region, local_usd_per_hour, use=use, as_of=as_of, source=source)


def _product(instance_type: str, region: str, usd_per_hour: Decimal, *, use: str, as_of: str, source: str) -> Product:
    usage_type = f"{USAGE_PREFIXES.get(region, region)}-{USAGE_NAMES[use]}:{instance_type}"
    sku = hashlib.sha256(usage_type.encode()).hexdigest()[:16].upper()
    term = f"{sku}.{OFFER_TERM_CODE}"
    dimension = {
        "unit": "Hrs",
        "endRange": "Inf",
        "description": f"Local snapshot: USD {usd_per_hour} per {use} {instance_type} hour ({source})",
        "appliesTo": [],
        "rateCode": f"{term}.{RATE_CODE}",
        "beginRange": "0",
        "pricePerUnit": {"USD": f"{usd_per_hour:.10f}"},
    }
    on_demand = {
        "priceDimensions": {f"{term}.{RATE_CODE}": dimension},
        "sku": sku,
        "effectiveDate": f"{as_of}T00:00:00Z",
        "offerTermCode": OFFER_TERM_CODE,
        "termAttributes": {},
    }
    attributes = {
        "servicecode": SERVICE_CODE,
        "servicename": "Amazon SageMaker",
        "regionCode": region,
        "locationType": "AWS Region",
        "instanceName": instance_type,
        "instanceType": instance_type,
        "platoinstancetype": use,
        "component": use,
        "operation": "RunInstance",
        "usagetype": usage_type,
        "localSnapshot": f"as of {as_of}: {source}",
    }
    return {
        "product": {"productFamily": "ML Instance", "attributes": attributes, "sku": sku},
        "serviceCode": SERVICE_CODE,
        "terms": {"OnDemand": {term: on_demand}},
        "version": f"local-snapshot-{as_of}",
        "publicationDate": f"{as_of}T00:00:00Z",
    }
