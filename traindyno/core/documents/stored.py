"""Dataclasses to JSON-able documents and back: money as text, numbers that are not finite as
null.
"""

from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from math import isfinite, nan
from typing import Any, ClassVar, TypeVar

from cattrs import Converter
from cattrs.strategies import configure_union_passthrough

# A JSON value that is neither a list nor a mapping.
JsonScalar = str | int | float | bool
# Any JSON value, as ``frozen_json`` returns it.
JsonValue = JsonScalar | tuple[Any, ...] | dict[str, Any] | None
Value = TypeVar("Value")


class FrozenMapping(dict[str, Any]):
    """A JSON object that nobody changes, so that it can be a member of a set."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


def frozen_json(value: Any) -> JsonValue:
    """The value with its lists as tuples.

    Raises ValueError for what is no JSON, as a date of YAML's is none.
    """
    match value:
        case None | str() | int() | float():
            return value
        case list() | tuple():
            return tuple(map(frozen_json, value))
        case Mapping() if all(isinstance(name, str) for name in value):
            return FrozenMapping((name, frozen_json(inner)) for name, inner in value.items())
    raise ValueError(f"{type(value).__name__} is no type of JSON")


class StoredPart:
    """What one feature adds to a record of all features. Its document names its class."""

    KINDS: ClassVar[dict[str, type["StoredPart"]]] = {}

    def __init_subclass__(cls) -> None:
        StoredPart.KINDS[cls.__name__] = cls


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
    converter.register_structure_hook_func(
        lambda kind: kind == JsonValue, lambda value, _: frozen_json(value)
    )
    converter.register_unstructure_hook_func(lambda kind: kind == JsonValue, lambda value: value)
    converter.register_unstructure_hook_func(
        lambda kind: kind is StoredPart,
        lambda part: {
            "part": type(part).__name__,
            **converter.unstructure(part, unstructure_as=type(part)),
        },
    )
    converter.register_structure_hook_func(
        lambda kind: kind is StoredPart,
        lambda document, _: converter.structure(document, StoredPart.KINDS[document["part"]]),
    )
    converter.register_structure_hook(
        float, lambda number, _: nan if number is None else float(number)
    )
    converter.register_unstructure_hook(float, lambda number: number if isfinite(number) else None)
    return converter
