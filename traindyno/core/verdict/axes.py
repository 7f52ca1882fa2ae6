"""The axes of a suite's cells, and the best cell for each pair of values of two of them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from traindyno.core.documents.stored import JsonValue
from traindyno.core.suite.settings import HYPERPARAMETER_PREFIX
from traindyno.core.suite.suite import Cell
from traindyno.core.suite.suite_file import settings_document
from traindyno.core.verdict.goal_metric import estimate_of
from traindyno.core.verdict.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMapAxis:
    """A setting that varies. ``values`` are texts: numbers in ascending order, others in the order of the cells."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """One value of each of two axes.

    ``cell_id``: the best measured cell with these values; None if none was measured. ``cell_count``: cells of the suite
    with these values. ``measure``: the best cell's, in the goal's metric.
    """

    column: str
    row: str
    cell_count: int
    cell_id: str | None
    measure: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    columns: HeatMapAxis
    rows: HeatMapAxis
    crossings: tuple[Crossing, ...]


def find_axes(cells: Sequence[Cell]) -> tuple[HeatMapAxis, ...]:
    """The settings and hyperparameters with at least two values; those with the most values first."""
    points = [_values(cell) for cell in cells]
    names = dict.fromkeys(name for point in points for name in point)
    axes = []
    for name in names:
        values = list(dict.fromkeys(_text(point.get(name)) for point in points))
        if len(values) > 1:
            axes.append(HeatMapAxis(name=name, values=tuple(_in_order(values))))
    return tuple(sorted(axes, key=lambda axis: -len(axis.values)))


def value_text(cell: Cell, name: str) -> str:
    """The text of a setting's or hyperparameter's value."""
    return _text(value_of(cell, name))


def value_of(cell: Cell, name: str) -> Any:
    """A setting's or hyperparameter's value as a suite writes it; None where the cell has none."""
    return _values(cell).get(name)


def map_heat(cells: Sequence[Cell], verdict: Verdict) -> tuple[HeatMap, ...]:
    """One map for each pair of axes, by the goal's metric."""
    points = {cell.cell_id: {name: _text(value) for name, value in _values(cell).items()} for cell in cells}
    rows = {row.cell_id: row for row in verdict.ranked_rows}
    known = {
        cell_id: found.mean
        for cell_id, row in rows.items()
        if cell_id in points and cell_id not in verdict.refused and (found := estimate_of(row, verdict.metric))
    }
    return tuple(_cross(columns, rows_axis, points, known) for columns, rows_axis in combinations(find_axes(cells), 2))


def _cross(
    columns: HeatMapAxis, rows: HeatMapAxis, points: Mapping[str, Mapping[str, str]], known: Mapping[str, float]
) -> HeatMap:
    there: dict[tuple[str, str], list[str]] = {}
    for cell_id, point in points.items():
        # A cell without a value for a setting, such as an image, has its default.
        found = point.get(columns.name, _text(None)), point.get(rows.name, _text(None))
        there.setdefault(found, []).append(cell_id)
    crossings = []
    for (column, row), cell_ids in there.items():
        best = min((cell_id for cell_id in cell_ids if cell_id in known), key=lambda each: known[each], default=None)
        crossings.append(
            Crossing(
                column=column,
                row=row,
                cell_count=len(cell_ids),
                cell_id=best,
                measure=None if best is None else known[best],
            )
        )
    return HeatMap(columns=columns, rows=rows, crossings=tuple(crossings))


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
