"""The strict converter between plain documents and our dataclasses: it does not read text as a
number, nor 1 as true.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from types import NoneType
from typing import Any, get_args, get_origin

from cattrs import Converter
from cattrs.errors import BaseValidationError
from cattrs.gen import make_dict_structure_fn, override

from traindyno.core.documents.field_description import described_fields
from traindyno.core.documents.problems import (
    EXPECTED_OF_TYPE,
    FieldProblems,
    Unexpected,
    close_to,
    expected_of,
    one_of,
    problems_of,
)
from traindyno.core.documents.stored import JsonScalar, JsonValue, Value, frozen_json, is_number
from traindyno.core.errors import DocumentInvalid, Problem

Structure = Callable[[Any, Any], Any]

# A stored suite has an exact number as text, so that a suite file may too.
DIGITS = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?")
# DynamoDB holds 38 digits and exponents to 125.
MOST_DIGITS = 28
LARGEST_EXPONENT = 18


def read_checked(
    document: Mapping[str, Any], kind: type[Value], problems: Sequence[Problem]
) -> Value:
    """The document as an object of this kind.

    Raises DocumentInvalid with all problems of form, and ``problems``, which are of content.
    """
    try:
        value = strict_converter([]).structure(document, kind)
    except (Unexpected, BaseValidationError, FieldProblems) as error:
        raise DocumentInvalid([*problems_of(error, ""), *problems]) from error
    if problems:
        raise DocumentInvalid(problems)
    return value


def strict_converter(choices: Iterable[type[StrEnum]]) -> Converter:
    """Converter that refuses unknown fields and values.

    ``choices`` are listed, because cattrs would otherwise treat a StrEnum as plain text.
    """
    converter = Converter(forbid_extra_keys=True, detailed_validation=True)
    for kind in (int, bool, str):
        converter.register_structure_hook(kind, _exact)
    converter.register_structure_hook(float, _number)
    converter.register_structure_hook(Decimal, _decimal)
    for choice in choices:
        converter.register_structure_hook(choice, _member)
        converter.register_unstructure_hook(choice, lambda member: member.value)
    converter.register_structure_hook_func(lambda kind: kind == JsonScalar, _scalar)
    converter.register_structure_hook_func(lambda kind: kind == JsonValue, _json_value)
    converter.register_unstructure_hook_func(lambda kind: kind == JsonValue, lambda value: value)
    converter.register_structure_hook_factory(
        _is_list, lambda kind: _list_structure(converter, kind)
    )
    converter.register_structure_hook_factory(
        _is_mapping, lambda kind: _mapping_structure(converter, kind)
    )
    converter.register_structure_hook_factory(
        is_dataclass, lambda kind: dataclass_structure(converter, kind)
    )
    converter.register_unstructure_hook(Decimal, lambda value: format(value, "f"))
    converter.register_unstructure_hook_factory(
        is_dataclass, lambda kind: _dataclass_unstructure(converter, kind)
    )
    return converter


def dataclass_structure(converter: Converter, kind: type, **overrides: Any) -> Structure:
    """cattrs' own structuring, after a check that the value is a mapping."""
    inner: Structure = make_dict_structure_fn(
        kind,
        converter,
        _cattrs_forbid_extra_keys=True,
        _cattrs_detailed_validation=True,
        **{**_described_overrides(converter, kind), **overrides},
    )
    names = ", ".join(field.name for field in fields(kind))

    def structure(value: Any, target: Any) -> Any:
        if not isinstance(value, Mapping):
            raise Unexpected(f"a mapping with {names}", value)
        return inner(value, target)

    return structure


def _described_overrides(converter: Converter, kind: type) -> dict[str, Any]:
    """The overrides for fields whose document has a word for None."""
    return {
        field.name: override(
            struct_hook=_word_or_value(converter, field.type, description.none_word)
        )
        for field, description in described_fields(kind)
        if description.none_word is not None
    }


def _word_or_value(converter: Converter, kind: Any, none_word: str) -> Structure:
    (inner,) = (part for part in get_args(kind) if part is not NoneType)

    def structure(value: Any, _: Any) -> Any:
        if value == none_word:
            return None
        try:
            return converter.structure(value, inner)
        except Unexpected as error:
            raise Unexpected(f"{none_word} or {expected_of(inner)}", value) from error

    return structure


def _dataclass_unstructure(converter: Converter, kind: type) -> Callable[[Any], dict[str, Any]]:
    """Document of a dataclass, without the fields that are None, unless the field has a word for
    None. Both are read as None.
    """
    words: dict[str, str | None] = dict.fromkeys(field.name for field in fields(kind))
    words |= {field.name: description.none_word for field, description in described_fields(kind)}

    def unstructure(value: Any) -> dict[str, Any]:
        values = ((name, getattr(value, name), word) for name, word in words.items())
        spelt = (
            (name, word if inner is None else converter.unstructure(inner))
            for name, inner, word in values
        )
        return {name: inner for name, inner in spelt if inner is not None}

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


def _exact(value: Any, kind: type) -> Any:
    """An integer, text, true or false."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise Unexpected(EXPECTED_OF_TYPE[kind], value)
    return kind(value)


def _number(value: Any, _: Any) -> float:
    with suppress(OverflowError):  # an integer beyond the largest float
        if is_number(value) and math.isfinite(value):
            return float(value)
    raise Unexpected("a number", value)


def _scalar(value: Any, _: Any) -> JsonScalar:
    if not isinstance(value, str | int | float):
        raise Unexpected("text, a number, true or false", value)
    return value


def _json_value(value: Any, _: Any) -> JsonValue:
    try:
        return frozen_json(value)
    except ValueError as error:
        raise Unexpected(
            "text, a number, true, false, null, or a list or a mapping of these", value
        ) from error


def _decimal(value: Any, _: Any) -> Decimal:
    """A float is converted through its shortest text, so that 0.1 is 0.1.

    Numbers that DynamoDB can't store are refused.
    """
    is_text = isinstance(value, str) and DIGITS.fullmatch(value)
    if not is_text and not is_number(value) and not isinstance(value, Decimal):
        raise Unexpected("a number", value)
    try:
        number = Decimal(str(value))
    except (
        InvalidOperation,
        ValueError,
    ) as error:  # Python writes no integer of more than 4300 digits
        raise Unexpected("a number", value) from error
    if not number.is_finite():
        raise Unexpected("a number", value)
    if len(number.as_tuple().digits) > MOST_DIGITS or abs(number.adjusted()) > LARGEST_EXPONENT:
        raise Unexpected(
            f"a number of at most {MOST_DIGITS} digits and a size of 1e±{LARGEST_EXPONENT}", value
        )
    return number


def _member(value: Any, kind: Any) -> StrEnum:
    try:
        return kind(value)  # type: ignore[no-any-return]
    except ValueError as error:
        names = [member.value for member in kind]
        raise Unexpected(one_of(names), value, meant=close_to(value, names)) from error
