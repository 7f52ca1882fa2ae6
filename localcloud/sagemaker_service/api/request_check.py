"""Checks a request against botocore's own model of the service; the problems have AWS's wording."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from botocore.model import OperationModel, Shape

from localcloud.sagemaker_service.api_error import ApiError, validation_error

JSON_TYPES: dict[str, tuple[type, ...]] = {
    "structure": (dict,),
    "map": (dict,),
    "list": (list,),
    "string": (str,),
    "blob": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "timestamp": (int, float, str),
}
UNICODE_CLASSES = {
    r"\p{L}": r"a-zA-Z\u00aa-\u1fff\u2c00-\uffff",
    r"\p{Z}": r" \u00a0\u2000-\u200a",
    r"\p{N}": "0-9",
}


def check_request(
    operation: OperationModel, request: object, extra_values: Mapping[str, frozenset[str]]
) -> None:
    """Raises ApiError for a bad request.

    ``extra_values`` has further values of enums, by their shape's name.
    """
    if operation.input_shape is None:
        return
    problems = list(_problems(operation.input_shape, request, "", extra_values))
    if problems:
        count = f"{len(problems)} validation error{'s' if len(problems) > 1 else ''} detected: "
        raise validation_error(count + "; ".join(problems))


def _problems(
    shape: Any, value: Any, path: str, extra_values: Mapping[str, frozenset[str]]
) -> Iterator[str]:
    _check_type(shape, value, path)
    match shape.type_name:
        case "structure":
            for name in shape.metadata.get("required", ()):
                if value.get(name) is None:
                    yield _problem(None, _member_path(path, name), "Member must not be null")
            for name, member in shape.members.items():
                if value.get(name) is not None:
                    yield from _problems(
                        member, value[name], _member_path(path, name), extra_values
                    )
        case "list":
            yield from _bound_problems(shape, "length", len(value), value, path)
            for position, element in enumerate(value, start=1):
                yield from _problems(
                    shape.member, element, f"{path}.{position}.member", extra_values
                )
        case "map":
            yield from _bound_problems(shape, "length", len(value), value, path)
            for key, element in value.items():
                yield from _problems(shape.key, key, f"{path}.key", extra_values)
                yield from _problems(shape.value, element, f"{path}.{key}.member", extra_values)
        case "string":
            yield from _text_problems(shape, value, path, extra_values)
        case "integer" | "long" | "float" | "double":
            yield from _bound_problems(shape, "value", value, value, path)


def _check_type(shape: Shape, value: object, path: str) -> None:
    expected = JSON_TYPES[shape.type_name]
    if not isinstance(value, expected) or (isinstance(value, bool) and bool not in expected):
        actual = f"{type(value).__name__} {value!r}"
        raise ApiError(
            "SerializationException",
            f"{path or 'the request'} is {actual}: expected {shape.type_name}",
        )


def _text_problems(
    shape: Shape, value: str, path: str, extra_values: Mapping[str, frozenset[str]]
) -> Iterator[str]:
    yield from _bound_problems(shape, "length", len(value), value, path)
    allowed = shape.metadata.get("enum")
    if allowed and value not in allowed and value not in extra_values.get(shape.name, frozenset()):
        yield _problem(value, path, f"Member must satisfy enum value set: [{', '.join(allowed)}]")
    pattern = shape.metadata.get("pattern")
    if pattern and not _compiled(pattern).fullmatch(value):
        yield _problem(value, path, f"Member must satisfy regular expression pattern: {pattern}")


def _bound_problems(
    shape: Shape, what: str, size: float, value: object, path: str
) -> Iterator[str]:
    least = shape.metadata.get("min")
    most = shape.metadata.get("max")
    if least is not None and size < least:
        yield _problem(value, path, f"Member must have {what} greater than or equal to {least}")
    if most is not None and size > most:
        yield _problem(value, path, f"Member must have {what} less than or equal to {most}")


def _problem(value: object, path: str, constraint: str) -> str:
    shown = "null" if value is None else f"'{value}'"
    return f"Value {shown} at '{path}' failed to satisfy constraint: {constraint}"


def _member_path(path: str, name: str) -> str:
    lowered = name[0].lower() + name[1:]
    return f"{path}.{lowered}" if path else lowered


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    for java, python in UNICODE_CLASSES.items():
        pattern = pattern.replace(java, python)
    return re.compile(pattern)
