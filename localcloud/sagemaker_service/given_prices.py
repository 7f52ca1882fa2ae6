"""Prices that a person gives to the local service in a JSON file: USD per instance hour by instance type."""

import json
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path

from traindyno.core.documents.problems import shown

EXPECTED = 'a JSON file such as {"ml.p4d.24xlarge": "37.69"}'


class PricesInvalid(ValueError):
    """The file has no prices."""


def read_given_prices(path: Path) -> dict[str, Decimal]:
    """Raises PricesInvalid."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise PricesInvalid(f"{path} can't be read ({error}), expected {EXPECTED}") from error
    if not isinstance(document, Mapping) or not document:
        raise PricesInvalid(f"{path}: got {shown(document)}, expected {EXPECTED}")
    return {name: _price(path, name, value) for name, value in document.items()}


def _price(path: Path, name: str, value: object) -> Decimal:
    try:
        usd_per_hour = Decimal(str(value))
    except InvalidOperation:
        usd_per_hour = Decimal("nan")
    if not usd_per_hour.is_finite() or usd_per_hour <= 0:
        raise PricesInvalid(f"{path}: {name}: got {shown(value)}, expected USD per hour above 0")
    return usd_per_hour
