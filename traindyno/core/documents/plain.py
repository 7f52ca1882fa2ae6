"""Dataclasses to plain values, as people write them: fields that are None are left out."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any


def plain_values(value: Any) -> Any:
    match value:
        case Enum():
            return value.value
        case Mapping():
            return {name: plain_values(inner) for name, inner in value.items()}
        case list() | tuple():
            return tuple(map(plain_values, value))
        case _ if is_dataclass(value):
            values = {field.name: getattr(value, field.name) for field in fields(value)}
            return {
                name: plain_values(inner) for name, inner in values.items() if inner is not None
            }
    return value


def id_of(content: Mapping[str, Any], digits: int = 64) -> str:
    """The first hexadecimal digits of the hash of a JSON object, whatever the order of its keys."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:digits]
