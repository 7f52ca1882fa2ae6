"""Dataclasses to plain values, as people write them: fields that are None are left out."""

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
