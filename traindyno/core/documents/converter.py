"""The strict converter between plain documents and our dataclasses: no text taken for a number, no 1 for true."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any, get_args, get_origin

from cattrs import Converter
from cattrs.gen import make_dict_structure_fn

from traindyno.core.documents.json_scalar import JsonScalar
from traindyno.core.documents.problems import Unexpected, one_of

Structure = Callable[[Any, Any], Any]


def strict_converter(choices: Iterable[type[StrEnum]]) -> Converter:
    """``choices`` are named one by one: cattrs would otherwise take a StrEnum for plain text."""
    converter = Converter(forbid_extra_keys=True, detailed_validation=True)
    for kind, structure in STRICT.items():
        converter.register_structure_hook(kind, structure)
    for choice in choices:
        converter.register_structure_hook(choice, _member)
        converter.register_unstructure_hook(choice, lambda member: member.value)
    converter.register_structure_hook_func(lambda kind: kind == JsonScalar, _scalar)
    converter.register_structure_hook_factory(_is_list, lambda kind: _list_structure(converter, kind))
    converter.register_structure_hook_factory(_is_mapping, lambda kind: _mapping_structure(converter, kind))
    converter.register_structure_hook_factory(is_dataclass, lambda kind: dataclass_structure(converter, kind))
    converter.register_unstructure_hook(Decimal, lambda value: format(value, "f"))
    converter.register_unstructure_hook_factory(is_dataclass, lambda kind: _dataclass_unstructure(converter, kind))
    return converter


def dataclass_structure(converter: Converter, kind: type, **overrides: Any) -> Structure:
    """cattrs' own structuring, behind a check that there is a mapping to structure."""
    inner: Structure = make_dict_structure_fn(
        kind,
        converter,
        _cattrs_forbid_extra_keys=True,
        _cattrs_detailed_validation=True,
        **overrides,
    )

    def structure(value: Any, target: Any) -> Any:
        if not isinstance(value, Mapping):
            raise Unexpected(f"a mapping with {', '.join(field.name for field in fields(kind))}", value)
        return inner(value, target)

    return structure


def _dataclass_unstructure(converter: Converter, kind: type) -> Callable[[Any], dict[str, Any]]:
    """Fields that are None are left out: absent and unknown read back the same."""
    names = [field.name for field in fields(kind)]

    def unstructure(value: Any) -> dict[str, Any]:
        present = {name: getattr(value, name) for name in names}
        return {name: converter.unstructure(inner) for name, inner in present.items() if inner is not None}

    return unstructure


def _is_list(kind: Any) -> bool:
    return get_origin(kind) is tuple and get_args(kind)[1:] == (...,)


def _is_mapping(kind: Any) -> bool:
    return get_origin(kind) is Mapping


def _list_structure(converter: Converter, kind: Any) -> Structure:
    (inner, _) = get_args(kind)

    def structure(value: Any, _: Any) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise Unexpected("a list", value)
        return tuple(converter.structure(value, list[inner]))  # type: ignore[valid-type]

    return structure


def _mapping_structure(converter: Converter, kind: Any) -> Structure:
    (key, inner) = get_args(kind)

    def structure(value: Any, _: Any) -> dict[Any, Any]:
        if not isinstance(value, Mapping):
            raise Unexpected("a mapping", value)
        return converter.structure(value, dict[key, inner])  # type: ignore[valid-type]

    return structure


def _integer(value: Any, _: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Unexpected("an integer", value)
    return value


def _number(value: Any, _: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise Unexpected("a number", value)
    return float(value)


def _boolean(value: Any, _: Any) -> bool:
    if not isinstance(value, bool):
        raise Unexpected("true or false", value)
    return value


def _text(value: Any, _: Any) -> str:
    if not isinstance(value, str):
        raise Unexpected("text", value)
    return str(value)


def _scalar(value: Any, _: Any) -> JsonScalar:
    if not isinstance(value, str | int | float):
        raise Unexpected("text, a number, true or false", value)
    return value


def _decimal(value: Any, _: Any) -> Decimal:
    """A float goes by its shortest text, so that 0.1 is 0.1."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise Unexpected("a number", value)
    try:
        number = Decimal(str(value))
    except InvalidOperation as error:
        raise Unexpected("a number", value) from error
    if not number.is_finite():
        raise Unexpected("a number", value)
    return number


def _member(value: Any, kind: Any) -> StrEnum:
    try:
        return kind(value)  # type: ignore[no-any-return]
    except ValueError as error:
        raise Unexpected(one_of((member.value for member in kind), value), value) from error


STRICT: dict[type, Structure] = {int: _integer, float: _number, bool: _boolean, str: _text, Decimal: _decimal}
