"""The axes in which a suite's cells differ, and each cell as a point on these axes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from math import log
from typing import Any

from traindyno.core.documents.stored import is_number
from traindyno.core.suite.settings import HYPERPARAMETER_PREFIX, Settings
from traindyno.core.suite.suite import Cell

# An axis has a logarithmic scale if its largest value is at least this many times its smallest.
LOGARITHMIC_RATIO = 3.0

Point = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """``positions`` of the levels, from 0 to 1, if they are numbers; None if they are names."""

    name: str
    levels: int
    positions: tuple[float, ...] | None

    @property
    def degrees_of_freedom(self) -> int:
        """Those of the axis's main effect: at most 2 for numbers (a smooth curve), levels - 1 for names."""
        return self.levels - 1 if self.positions is None else min(2, self.levels - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """``points``: for each cell, in the order given, the index of its level on each axis."""

    axes: tuple[Axis, ...]
    points: tuple[Point, ...]


def build_space(cells: Sequence[Cell]) -> Space:
    axes, columns = [], []
    for name, values in _varying(cells):
        levels = _levels(values)
        places = {_key(level): index for index, level in enumerate(levels)}
        axes.append(Axis(name=name, levels=len(levels), positions=_positions(levels)))
        columns.append([places[_key(value)] for value in values])
    points = tuple(zip(*columns, strict=True)) if columns else tuple(() for _ in cells)
    return Space(axes=tuple(axes), points=points)


def _varying(cells: Sequence[Cell]) -> Iterator[tuple[str, list[Any]]]:
    """The settings and hyperparameters that have at least two values, with the value of each cell."""
    for each in fields(Settings):
        values = [getattr(cell.settings, each.name) for cell in cells]
        if len(set(map(_key, values))) > 1:
            yield each.name, values
    for name in sorted({name for cell in cells for name in cell.hyperparameters}):
        values = [cell.hyperparameters.get(name) for cell in cells]
        if len(set(map(_key, values))) > 1:
            yield f"{HYPERPARAMETER_PREFIX}{name}", values


def _key(value: Any) -> tuple[type, Any]:
    """Tells 1 and True apart: they are equal in Python, but different levels of an axis."""
    return type(value), value


def _levels(values: Sequence[Any]) -> list[Any]:
    """Each value once: numbers in ascending order, names in the order of the cells."""
    levels = list({_key(value): value for value in values}.values())
    return sorted(levels) if all(map(is_number, levels)) else levels


def _positions(levels: Sequence[Any]) -> tuple[float, ...] | None:
    """Positions by logarithms, because the effects of batch sizes and instance counts follow their ratios; counts with
    0 also.
    """
    if not all(map(is_number, levels)):
        return None
    least, most = levels[0], levels[-1]
    if least > 0 and most / least >= LOGARITHMIC_RATIO:
        scaled = [log(level) for level in levels]
    elif least == 0 and most > 2:
        scaled = [log(1 + level) for level in levels]
    else:
        scaled = [float(level) for level in levels]
    return tuple((value - scaled[0]) / (scaled[-1] - scaled[0]) for value in scaled)
