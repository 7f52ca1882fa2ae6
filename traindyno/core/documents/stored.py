"""Dataclasses to JSON-able documents and back: money as text, numbers that are not finite as
null.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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
Part = TypeVar("Part", bound="StoredPart")
KIND = "kind"
# Documents of earlier code name the class of a part here.
CLASS = "part"
KINDS_OF_CLASSES = {
    "CellBatch": "batch",
    "CellQuality": "quality",
    "CellSteps": "steps",
    "CellWeights": "weights",
}


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
    """What one feature adds to a record of all features. Its document names its ``kind``, which
    stays when the class gets another name.
    """

    KINDS: ClassVar[dict[str, type["StoredPart"]]] = {}
    #: Each class has its own.
    kind: ClassVar[str]

    def __init_subclass__(cls) -> None:
        StoredPart.KINDS[cls.kind] = cls


@dataclass(frozen=True, slots=True)
class UnknownPart:
    """The document of a part whose feature this program does not have.

    It is written as it was read.
    """

    document: Mapping[str, Any]


# A record's parts, those that it does not know included.
AnyPart = StoredPart | UnknownPart


def find_part(parts: Iterable[AnyPart], wanted: type[Part]) -> Part | None:
    """A record's part of this kind, also one that was read before the program imported its
    feature.
    """
    for part in parts:
        if isinstance(part, wanted):
            return part
        if isinstance(part, UnknownPart) and part.document[KIND] == wanted.kind:
            return from_document(part.document, wanted)
    return None


def is_number(value: Any) -> bool:
    """Whether a value is a number. True and False, which Python counts as integers, are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def to_document(value: Any) -> Any:
    return _converter().unstructure(value)


def from_document(document: Mapping[str, Any], kind: type[Value]) -> Value:
    return _converter().structure(document, kind)


def _part_document(part: AnyPart) -> dict[str, Any]:
    if isinstance(part, UnknownPart):
        return dict(part.document)
    return {KIND: part.kind, **_converter().unstructure(part, unstructure_as=type(part))}


def _read_part(document: Mapping[str, Any]) -> AnyPart:
    if CLASS in document:
        kind = KINDS_OF_CLASSES.get(document[CLASS], document[CLASS])
        fields = {name: value for name, value in document.items() if name != CLASS}
        document = {KIND: kind, **fields}
    known = StoredPart.KINDS.get(document[KIND])
    return from_document(document, known) if known else UnknownPart(document)


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
    converter.register_unstructure_hook_func(lambda kind: kind == AnyPart, _part_document)
    converter.register_structure_hook_func(
        lambda kind: kind == AnyPart, lambda document, _: _read_part(document)
    )
    converter.register_structure_hook(
        float, lambda number, _: nan if number is None else float(number)
    )
    converter.register_unstructure_hook(float, lambda number: number if isfinite(number) else None)
    return converter
