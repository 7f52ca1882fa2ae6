"""Series of cells over the number of instances: equal in all else, but for what follows from it.

An argument of a script follows the size if it is a number and takes exactly one value for each size, in cells that
are equal in all else: ``max_steps`` where each size trains on as many examples. If several arguments could follow, but
not together, those whose values recur at the fewest sizes follow; the others are axes of their own.
Settings never follow, nor do arguments whose values are only 0 and 1: these switch something, such as a precision.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from traindyno.core.suite.arguments import arguments_of, number_of
from traindyno.core.suite.cells import label_cells
from traindyno.core.suite.settings import Settings
from traindyno.core.suite.suite import Cell
from traindyno.core.suite.suite_file import suite_converter
from traindyno.core.suite.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """``cells`` from the fewest instances. ``following``: the arguments that change with their number."""

    cells: tuple[Cell, ...]
    following: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Point:
    """``numbers``: its arguments that are numbers. ``rest``: everything but these and the size, as one text."""

    cell: Cell
    size: int
    numbers: dict[str, float]
    rest: str


def find_series(cells: Sequence[Cell], workload: Workload) -> tuple[Series, ...]:
    """Each cell is in one series; their order is that of the cells."""
    equal: dict[str, list[_Point]] = {}
    for cell in cells:
        point = _point(cell, workload)
        equal.setdefault(point.rest, []).append(point)
    return tuple(series for points in equal.values() for series in _divide(points))


def _divide(points: Sequence[_Point]) -> Iterator[Series]:
    names = sorted(points[0].numbers)
    follow = _followers(points, names)
    for group in _group(points, [name for name in names if name not in follow]).values():
        ordered = sorted(group, key=lambda point: point.size)
        yield Series(
            cells=tuple(point.cell for point in ordered),
            following=tuple(name for name in follow if len({point.numbers[name] for point in group}) > 1),
        )


def _followers(points: Sequence[_Point], names: Sequence[str]) -> list[str]:
    found: list[str] = []
    candidates = [name for name in names if not {point.numbers[name] for point in points} <= {0, 1}]
    for name in sorted(candidates, key=lambda name: (_recurrence(points, name), name)):
        others = [each for each in names if each != name and each not in found]
        if all(len({point.size for point in group}) == len(group) for group in _group(points, others).values()):
            found.append(name)
    return found


def _recurrence(points: Sequence[_Point], name: str) -> float:
    """The mean number of sizes at which a value of the argument occurs."""
    return len({(point.size, point.numbers[name]) for point in points}) / len({point.numbers[name] for point in points})


def _group(points: Sequence[_Point], names: Sequence[str]) -> dict[tuple[float, ...], list[_Point]]:
    """Values of these arguments → the points that have them."""
    groups: dict[tuple[float, ...], list[_Point]] = {}
    for point in points:
        groups.setdefault(tuple(point.numbers[name] for name in names), []).append(point)
    return groups


def _point(cell: Cell, workload: Workload) -> _Point:
    arguments = arguments_of(cell, workload)
    numbers = {name: number for name, value in arguments.items() if (number := number_of(value)) is not None}
    texts = {name: value for name, value in arguments.items() if name not in numbers}
    settings = suite_converter().unstructure(_of_any_size(cell.settings))
    return _Point(
        cell=cell,
        size=cell.settings.instance_count,
        numbers=numbers,
        rest=json.dumps([settings, texts, sorted(numbers)], sort_keys=True),
    )


def _of_any_size(settings: Settings) -> Settings:
    return replace(settings, instance_count=Settings(instance=settings.instance).instance_count)


def label_series(series: Sequence[Series]) -> tuple[Cell, ...]:
    """One cell for each series, without what changes along it. Its label names what varies between the series."""
    cells = []
    for each in series:
        first = each.cells[0]
        given = {name: value for name, value in first.hyperparameters.items() if name not in each.following}
        cells.append(replace(first, hyperparameters=given, settings=_of_any_size(first.settings)))
    return label_cells(cells)
