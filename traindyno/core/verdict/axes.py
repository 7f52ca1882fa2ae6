"""The settings and hyperparameters that vary between a suite's cells, and their values."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from traindyno.core.documents.stored import JsonValue
from traindyno.core.suite.settings import HYPERPARAMETER_PREFIX
from traindyno.core.suite.suite import Cell
from traindyno.core.suite.suite_file import settings_document


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A setting that varies. ``values`` are texts: numbers in ascending order, others in the order of the cells."""

    name: str
    values: tuple[str, ...]


def find_axes(cells: Sequence[Cell]) -> tuple[Axis, ...]:
    """The settings and hyperparameters with at least two values; those with the most values first."""
    points = [_values(cell) for cell in cells]
    names = dict.fromkeys(name for point in points for name in point)
    axes = []
    for name in names:
        values = list(dict.fromkeys(_text(point.get(name)) for point in points))
        if len(values) > 1:
            axes.append(Axis(name=name, values=tuple(_in_order(values))))
    return tuple(sorted(axes, key=lambda axis: -len(axis.values)))


def value_text(cell: Cell, name: str) -> str:
    """The text of a setting's or hyperparameter's value."""
    return _text(value_of(cell, name))


def value_of(cell: Cell, name: str) -> Any:
    """A setting's or hyperparameter's value as a suite writes it; None where the cell has none."""
    return _values(cell).get(name)


def _values(cell: Cell) -> dict[str, Any]:
    given = {f"{HYPERPARAMETER_PREFIX}{name}": value for name, value in cell.hyperparameters.items()}
    return {**settings_document(cell.settings), **given}


def _text(value: JsonValue | Mapping[str, Any]) -> str:
    match value:
        case None:
            return "default"
        case bool():
            return "on" if value else "off"
        case Mapping():
            return ", ".join(f"{name} {_text(each)}" for name, each in value.items() if each is not None)
        case float():
            return f"{value:g}"
        case tuple():
            return json.dumps(value)
        case _:
            return str(value)


def _in_order(values: Sequence[str]) -> list[str]:
    numbers = [_number(value) for value in values]
    if any(number is None for number in numbers):
        return list(values)
    return [value for _, value in sorted(zip((each or 0.0 for each in numbers), values, strict=True))]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
