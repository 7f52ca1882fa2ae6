"""The description of one field of a document: its help, bounds and unit."""

from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from decimal import Decimal
from typing import Any, TypeVar

KEY = "description"
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Range of a field. ``above`` is itself not accepted; ``least`` and ``most`` are."""

    above: float | None = None
    least: float | None = None
    most: float | None = None

    def accepts(self, value: float | Decimal) -> bool:
        return (
            (self.above is None or value > self.above)
            and (self.least is None or value >= self.least)
            and (self.most is None or value <= self.most)
        )

    def __str__(self) -> str:
        parts = [
            f"more than {self.above:g}" if self.above is not None else "",
            f"at least {_plain(self.least)}" if self.least is not None else "",
            f"at most {_plain(self.most)}" if self.most is not None else "",
        ]
        return " and ".join(part for part in parts if part)


def _plain(number: float) -> str:
    """A number as text, integers without an exponent: 2419200, not 2.4192e+06."""
    return str(int(number)) if number == int(number) else f"{number:g}"


POSITIVE = Bound(above=0)
COUNT = Bound(least=1)
NOT_NEGATIVE = Bound(least=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldDescription:
    """Description of a field.

    ``meaning`` is one line for the schema and the documentation. ``none_word`` is the document's
    word for None, if it has one. ``default`` describes the default in words, if the type's default
    does not.
    """

    meaning: str
    bound: Bound | None = None
    unit: str | None = None
    none_word: str | None = None
    default: str | None = None


def describe(meaning: str, **description: Any) -> Mapping[str, FieldDescription]:
    """The ``metadata`` of a dataclass field without a default."""
    return {KEY: FieldDescription(meaning=meaning, **description)}


def described(
    value: Value,
    meaning: str,
    *,
    kind: type[FieldDescription] = FieldDescription,
    **description: Any,
) -> Value:
    """A field of a dataclass with this default.

    Each object gets its own mapping where the default is one.
    """
    metadata = {KEY: kind(meaning=meaning, **description)}
    if isinstance(value, dict):
        return field(default_factory=value.copy, metadata=metadata)  # type: ignore[return-value]
    return field(default=value, metadata=metadata)


def description_of(field: Field[Any]) -> FieldDescription | None:
    description = field.metadata.get(KEY)
    return description if isinstance(description, FieldDescription) else None


def described_fields(kind: Any) -> Iterator[tuple[Field[Any], FieldDescription]]:
    """The fields of a dataclass that have a description."""
    descriptions = ((own_field, description_of(own_field)) for own_field in fields(kind))
    return (
        (own_field, description)
        for own_field, description in descriptions
        if description is not None
    )
