"""The arguments of a cell's script: those of all cells, and the cell's own."""

from collections.abc import Mapping
from dataclasses import replace
from math import isfinite

from traindyno.core.documents.stored import JsonValue
from traindyno.core.suite.suite import Cell
from traindyno.core.suite.workload import Workload


def arguments_of(cell: Cell, workload: Workload) -> Mapping[str, JsonValue]:
    """The arguments that its job gets: the cell's own value counts before that of all cells."""
    return {**workload.hyperparameters, **cell.hyperparameters}


def with_all_arguments(cell: Cell, workload: Workload) -> Cell:
    """The same cell, with the arguments of all cells among its own."""
    return replace(cell, hyperparameters=arguments_of(cell, workload))


def number_of(value: JsonValue) -> float | None:
    """A number, or a text that is one: a script reads both alike. None for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None
