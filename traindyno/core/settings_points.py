"""Points and axes of a suite: settings by name, each value read as that setting's own type."""

from collections.abc import Iterator, Mapping
from typing import Any, get_type_hints

from cattrs import Converter
from cattrs.errors import BaseValidationError

from traindyno.core.document_problems import FieldProblems, Unexpected, join_path, problems_of, unknown_field
from traindyno.core.errors import Problem
from traindyno.core.suite import JsonScalar, Settings

HYPERPARAMETER_PREFIX = "hyperparameters."
RENAMED = {"warmup_steps": "warmup"}
WRONG_VALUE = (Unexpected, BaseValidationError, FieldProblems)


def settings_types() -> dict[str, Any]:
    return get_type_hints(Settings)


def _structure_field(converter: Converter, name: str, value: Any) -> Any:
    if name.startswith(HYPERPARAMETER_PREFIX):
        return converter.structure(value, JsonScalar)  # type: ignore[arg-type]
    return converter.structure(value, settings_types()[name])


def structure_point(converter: Converter, document: Any) -> dict[str, Any]:
    """Some of a cell's settings: field → value."""
    return {name: value for name, (value,) in _structure_fields(converter, document, _one_value).items()}


def structure_matrix(converter: Converter, document: Any) -> dict[str, tuple[Any, ...]]:
    return _structure_fields(converter, document, _list_of_values)


def _structure_fields(converter: Converter, document: Any, values_of: Any) -> dict[str, tuple[Any, ...]]:
    if not isinstance(document, Mapping):
        raise Unexpected("a mapping of settings", document)
    found: dict[str, tuple[Any, ...]] = {}
    problems: list[Problem] = []
    for name, raw in document.items():
        if not _is_settings_field(name):
            problems.append(unknown_field("", name, [*settings_types(), f"{HYPERPARAMETER_PREFIX}<name>"]))
            continue
        values: list[Any] = []
        for path, value in values_of(name, raw):
            try:
                values.append(_structure_field(converter, name, value))
            except WRONG_VALUE as error:
                problems += problems_of(error, path, RENAMED)
        if not isinstance(raw, list) and values_of is _list_of_values:
            problems.append(Problem(path=name, message=str(Unexpected("a list of values", raw))))
        found[name] = tuple(values)
    if problems:
        raise FieldProblems(problems)
    return found


def _one_value(name: str, raw: Any) -> Iterator[tuple[str, Any]]:
    yield name, raw


def _list_of_values(name: str, raw: Any) -> Iterator[tuple[str, Any]]:
    for index, value in enumerate(raw if isinstance(raw, list) else ()):
        yield join_path(name, index), value


def _is_settings_field(name: Any) -> bool:
    return isinstance(name, str) and (
        name in settings_types() or (name.startswith(HYPERPARAMETER_PREFIX) and name != HYPERPARAMETER_PREFIX)
    )


def structure_points(converter: Converter, document: Any) -> tuple[dict[str, Any], ...]:
    if not isinstance(document, list | tuple):
        raise Unexpected("a list of mappings of settings", document)
    points: list[dict[str, Any]] = []
    problems: list[Problem] = []
    for index, point in enumerate(document):
        try:
            points.append(structure_point(converter, point))
        except WRONG_VALUE as error:
            problems += problems_of(error, f"[{index}]", RENAMED)
    if problems:
        raise FieldProblems(problems)
    return tuple(points)
