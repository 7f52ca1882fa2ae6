"""Series of cells over an axis, such as the number of instances: equal in all else, but for what follows the axis.

An argument of a script follows the axis if it is a number and takes exactly one value for each value of the axis, in
cells that are equal in all else: ``max_steps`` where each size trains on as many examples. If several arguments could
follow, but not together, those whose values recur least along the axis follow; the others are axes of their own.
Settings never follow, nor do arguments whose values are only 0 and 1: these switch something, such as a precision.
"""

import json
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

from traindyno.core.documents.stored import JsonValue
from traindyno.core.suite.arguments import arguments_of, number_of
from traindyno.core.suite.cells import label_cells
from traindyno.core.suite.settings import HYPERPARAMETER_PREFIX, Settings
from traindyno.core.suite.suite import Cell
from traindyno.core.suite.suite_file import suite_converter
from traindyno.core.suite.workload import Workload

SIZE = "instance_count"


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """``cells`` in the order of the axis. ``following``: the arguments that change along it."""

    cells: tuple[Cell, ...]
    following: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Point:
    """``place``: its value of the axis, and of the settings that don't part cells. ``numbers``: its other arguments
    that are numbers. ``rest``: everything else, as one text.
    """

    cell: Cell
    place: tuple[float, tuple[Hashable, ...]]
    numbers: dict[str, float]
    rest: str


def find_series(
    cells: Sequence[Cell],
    workload: Workload,
    *,
    axis: str = SIZE,
    following: Collection[str] | None = None,
    beside: Collection[str] = (),
) -> tuple[Series, ...]:
    """Each cell with a number on the axis is in one series; their order is that of the cells.

    ``following`` names the arguments that follow, in place of the rule. ``beside``: settings that may differ within a
    series; cells that differ in one of these have places of their own.
    """
    equal: dict[str, list[_Point]] = {}
    for point in _points(cells, workload, axis, following or (), beside):
        equal.setdefault(point.rest, []).append(point)
    return tuple(series for points in equal.values() for series in _divide(points, following))


def _divide(points: Sequence[_Point], following: Collection[str] | None) -> Iterator[Series]:
    names = sorted(points[0].numbers)
    follow = _followers(points, names) if following is None else ()
    for group in _group(points, [name for name in names if name not in follow]).values():
        ordered = sorted(group, key=lambda point: point.place[0])
        yield Series(
            cells=tuple(point.cell for point in ordered),
            following=tuple(following)
            if following is not None
            else tuple(name for name in follow if len({point.numbers[name] for point in group}) > 1),
        )


def _is_switch(points: Sequence[_Point], name: str) -> bool:
    return {point.numbers[name] for point in points} <= {0, 1}


def _followers(points: Sequence[_Point], names: Sequence[str]) -> list[str]:
    found: list[str] = []
    candidates = [name for name in names if not _is_switch(points, name)]
    for name in sorted(candidates, key=lambda name: (_recurrence(points, name), name)):
        others = [each for each in names if each != name and each not in found]
        if all(_has_one_each(group) for group in _group(points, others).values()):
            found.append(name)
    return found


def _recurrence(points: Sequence[_Point], name: str) -> float:
    """The mean number of places of the axis at which a value of the argument occurs."""
    return len({(point.place[0], point.numbers[name]) for point in points}) / len(
        {point.numbers[name] for point in points}
    )


def _has_one_each(group: Sequence[_Point]) -> bool:
    return len({point.place for point in group}) == len(group)


def _group(points: Sequence[_Point], names: Sequence[str]) -> dict[tuple[float, ...], list[_Point]]:
    """Values of these arguments → the points that have them."""
    groups: dict[tuple[float, ...], list[_Point]] = {}
    for point in points:
        groups.setdefault(tuple(point.numbers[name] for name in names), []).append(point)
    return groups


def _points(
    cells: Sequence[Cell], workload: Workload, axis: str, following: Collection[str], beside: Collection[str]
) -> Iterator[_Point]:
    for cell in cells:
        arguments = {name: value for name, value in arguments_of(cell, workload).items() if name not in following}
        on_axis = axis_value(cell, workload, axis)
        if on_axis is None:
            continue
        numbers = {name: number for name, value in arguments.items() if (number := number_of(value)) is not None}
        numbers.pop(axis.removeprefix(HYPERPARAMETER_PREFIX), None)
        yield _Point(
            cell=cell,
            place=(on_axis, tuple(getattr(cell.settings, name) for name in beside)),
            numbers=numbers,
            rest=_rest(cell, arguments, numbers, axis, beside),
        )


def axis_value(cell: Cell, workload: Workload, axis: str) -> float | None:
    """None where the setting or argument is no number."""
    if axis.startswith(HYPERPARAMETER_PREFIX):
        return number_of(arguments_of(cell, workload).get(axis.removeprefix(HYPERPARAMETER_PREFIX)))
    value = getattr(cell.settings, axis)
    return number_of(value) if isinstance(value, int | float) else None


def _rest(
    cell: Cell, arguments: dict[str, JsonValue], numbers: dict[str, float], axis: str, beside: Collection[str]
) -> str:
    plain = Settings(instance=cell.settings.instance)
    ignored = {name: getattr(plain, name) for name in {axis, *beside} if not name.startswith(HYPERPARAMETER_PREFIX)}
    own = axis.removeprefix(HYPERPARAMETER_PREFIX)
    texts = {name: value for name, value in arguments.items() if name not in numbers and name != own}
    return json.dumps(
        [suite_converter().unstructure(replace(cell.settings, **ignored)), texts, sorted(numbers)], sort_keys=True
    )


def label_series(series: Sequence[Series], *, axis: str = SIZE) -> tuple[Cell, ...]:
    """One cell for each series, without what changes along it. Its label names what varies between the series."""
    return label_cells([_without_axis(each, axis) for each in series])


def _without_axis(series: Series, axis: str) -> Cell:
    first = series.cells[0]
    changing = {*series.following, axis.removeprefix(HYPERPARAMETER_PREFIX)}
    given = {name: value for name, value in first.hyperparameters.items() if name not in changing}
    if axis.startswith(HYPERPARAMETER_PREFIX):
        return replace(first, hyperparameters=given)
    plain = {axis: getattr(Settings(instance=first.settings.instance), axis)}
    return replace(first, hyperparameters=given, settings=replace(first.settings, **plain))
