"""JSON Schema of one Python type, as the strict converter reads it."""

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from decimal import Decimal
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from traindyno.core.suite.suite_bounds import Bound

Schema = dict[str, Any]

PLAIN: dict[Any, Schema] = {
    Any: {},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    str: {"type": "string"},
    NoneType: {"type": "null"},
    Decimal: {"type": ["number", "string"], "pattern": r"^[-+]?[0-9]+(\.[0-9]+)?$"},
}


def schema_of(kind: Any, special: Mapping[Any, Schema]) -> Schema:
    """``special``: types whose document differs from what their fields say."""
    if kind in special or kind in PLAIN:
        return dict(special.get(kind) or PLAIN[kind])
    if get_origin(kind) in (Union, UnionType):
        return {"anyOf": [schema_of(part, special) for part in get_args(kind)]}
    if get_origin(kind) is tuple:
        return {"type": "array", "items": schema_of(get_args(kind)[0], special)}
    if get_origin(kind) is Mapping:
        return {"type": "object", "additionalProperties": schema_of(get_args(kind)[1], special)}
    if issubclass(kind, StrEnum):
        return {"enum": [member.value for member in kind]}
    assert is_dataclass(kind), f"a suite holds no {kind}"
    return object_schema(kind, special)


def object_schema(kind: Any, special: Mapping[Any, Schema]) -> Schema:
    hints = get_type_hints(kind)
    required = [field.name for field in fields(kind) if field.default is MISSING and field.default_factory is MISSING]
    schema: Schema = {
        "type": "object",
        "properties": {field.name: schema_of(hints[field.name], special) for field in fields(kind)},
        "additionalProperties": False,
    }
    if required:
        schema["required"] = required
    if kind.__doc__ and not kind.__doc__.startswith(f"{kind.__name__}("):
        schema["description"] = " ".join(kind.__doc__.split())
    return schema


def with_bound(schema: Schema, bound: Bound) -> Schema:
    limits = {"exclusiveMinimum": bound.above, "minimum": bound.least, "maximum": bound.most}
    return {**schema, **{name: limit for name, limit in limits.items() if limit is not None}}
