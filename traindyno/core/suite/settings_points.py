"""Points and axes of a suite: settings by name, each value read as that setting's own type."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, TypeVar, get_type_hints

from cattrs import Converter
from cattrs.errors import BaseValidationError

from traindyno.core.documents.json_scalar import JsonScalar
from traindyno.core.documents.problems import FieldProblems, Unexpected, problems_of, unknown_field
from traindyno.core.errors import Problem
from traindyno.core.suite.suite import Settings

HYPERPARAMETER_PREFIX = "hyperparameters."
RENAMED = {"warmup_steps": "warmup"}
WRONG_VALUE = (Unexpected, BaseValidationError, FieldProblems)

Part = TypeVar("Part")


@cache
def settings_types() -> dict[str, Any]:
    return get_type_hints(Settings)


def structure_point(converter: Converter, document: Any) -> dict[str, Any]:
    """Some of a cell's settings: field → value."""
    return _structure_fields(document, lambda name, value: _structure_setting(converter, name, value))


def structure_points(converter: Converter, document: Any) -> tuple[dict[str, Any], ...]:
    if not isinstance(document, list | tuple):
        raise Unexpected("a list of mappings of settings", document)
    return tuple(_structure_each(_numbered(document), lambda _, point: structure_point(converter, point)))


def structure_matrix(converter: Converter, document: Any) -> dict[str, tuple[Any, ...]]:
    """Field → the values that it takes."""

    def structure_axis(name: str, values: Any) -> tuple[Any, ...]:
        if not isinstance(values, list | tuple):
            raise Unexpected("a list of values", values)
        return tuple(_structure_each(_numbered(values), lambda _, value: _structure_setting(converter, name, value)))

    return _structure_fields(document, structure_axis)


def _structure_setting(converter: Converter, name: str, value: Any) -> Any:
    if name.startswith(HYPERPARAMETER_PREFIX):
        return converter.structure(value, JsonScalar)  # type: ignore[arg-type]
    return converter.structure(value, settings_types()[name])


def _structure_fields(document: Any, structure: Callable[[str, Any], Part]) -> dict[str, Part]:
    if not isinstance(document, Mapping):
        raise Unexpected("a mapping of settings", document)
    known = [name for name in document if _is_settings_field(name)]
    accepted = [*settings_types(), f"{HYPERPARAMETER_PREFIX}<name>"]
    unknown = [unknown_field("", name, accepted) for name in document if name not in known]
    parts = _structure_each([(name, document[name]) for name in known], structure, unknown)
    return dict(zip(known, parts, strict=True))


def _structure_each(
    parts: Iterable[tuple[str, Any]], structure: Callable[[str, Any], Part], problems: Iterable[Problem] = ()
) -> list[Part]:
    """All parts, or FieldProblems with the problems of all of them beside those given."""
    found, wrong = [], list(problems)
    for path, value in parts:
        try:
            found.append(structure(path, value))
        except WRONG_VALUE as error:
            wrong += problems_of(error, path, RENAMED)
    if wrong:
        raise FieldProblems(wrong)
    return found


def _numbered(values: Iterable[Any]) -> Iterable[tuple[str, Any]]:
    return ((f"[{index}]", value) for index, value in enumerate(values))


def _is_settings_field(name: Any) -> bool:
    return isinstance(name, str) and (
        name in settings_types() or (name.startswith(HYPERPARAMETER_PREFIX) and name != HYPERPARAMETER_PREFIX)
    )
