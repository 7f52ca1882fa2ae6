"""Dataclasses to JSON-able documents and back: money as text, numbers that are not finite as null."""

from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from math import isfinite, nan
from typing import Any, TypeVar

from cattrs import Converter
from cattrs.strategies import configure_union_passthrough

# A JSON value that is neither a list nor a mapping.
JsonScalar = str | int | float | bool
Value = TypeVar("Value")


def is_number(value: Any) -> bool:
    """True and False, which Python counts as integers, are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def to_document(value: Any) -> Any:
    return _converter().unstructure(value)


def from_document(document: Mapping[str, Any], kind: type[Value]) -> Value:
    return _converter().structure(document, kind)


@cache
def _converter() -> Converter:
    converter = Converter()  # fields that a later version has removed are ignored
    converter.register_unstructure_hook(Decimal, str)
    converter.register_unstructure_hook(str, str)  # makes plain text of a StrEnum
    converter.register_structure_hook(Decimal, lambda text, _: Decimal(str(text)))
    configure_union_passthrough(JsonScalar, converter)
    converter.register_structure_hook(float, lambda number, _: nan if number is None else float(number))
    converter.register_unstructure_hook(float, lambda number: number if isfinite(number) else None)
    return converter
