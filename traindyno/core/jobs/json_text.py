"""JSON of a container, which may be cut off or damaged: what can't be read is None."""

import json
from math import isfinite
from typing import Any


def read_object(text: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def number_of(value: object) -> float | None:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if isfinite(number) else None


def whole_of(value: object) -> int | None:
    number = number_of(value)
    return int(number) if number is not None and number.is_integer() else None


def text_of(value: object) -> str | None:
    """Text that can be stored: UTF-8 has no lone surrogates."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else None
