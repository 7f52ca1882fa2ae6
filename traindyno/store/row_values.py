"""Values as DynamoDB takes them: numbers are Decimal, and a number that is not finite has no place there."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from math import isfinite
from typing import Any


def to_row(value: Any) -> Any:
    """None stays None, so that a row says "unknown" where the document does."""
    match value:
        case bool() | str():
            return value
        case float():
            return Decimal(str(value)) if isfinite(value) else None
        case Mapping():
            return {key: to_row(inner) for key, inner in value.items()}
        case Sequence():
            return [to_row(inner) for inner in value]
    return value
