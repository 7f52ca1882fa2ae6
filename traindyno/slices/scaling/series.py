"""Cells that are equal in all but one number, such as their instances or loader workers.

An argument of a script follows the axis if it is a number and takes exactly one value for each
value of the axis, in cells that are equal in all else: ``max_steps`` where each size trains on as
many examples. If several arguments could follow, but not together, those whose values recur at the
fewest values of the axis follow; the others are axes of their own. Settings never follow, nor do
arguments whose values are only 0 and 1: these switch something, such as a precision.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from traindyno.core.documents.plain import plain_values
from traindyno.core.run.settings import (
    HYPERPARAMETER_PREFIX,
    Effect,
    Settings,
    setting_types,
    settings_with,
)
from traindyno.core.run.workload import Workload
from traindyno.core.suite.arguments import arguments_of, number_of
from traindyno.core.suite.cells import Cell, label_cells

INSTANCES = "instance_count"
SWITCH = {0, 1}


def axis_number(cell: Cell, workload: Workload, axis: str) -> float | None:
    """The value of a setting or, with its prefix, of an argument; None if it is no number."""
    if axis.startswith(HYPERPARAMETER_PREFIX):
        arguments = arguments_of(cell, workload)
        return number_of(arguments.get(axis.removeprefix(HYPERPARAMETER_PREFIX)))
    return number_of(getattr(cell.settings, axis))


def axis_text(axis: str) -> str:
    if axis == INSTANCES:
        return "instances"
    return axis.removeprefix(HYPERPARAMETER_PREFIX).replace("_", " ")


def find_axes(cells: Sequence[Cell], workload: Workload) -> tuple[str, ...]:
    """Settings and arguments with at least two numbers, instances first, then by how many they
    take.

    Settings that follow another one, switches, and settings that affect only learning are left out.
    """
    arguments = dict.fromkeys(name for cell in cells for name in arguments_of(cell, workload))
    settings = [name for name in setting_types() if name not in settings_with(Effect.LEARNING)]
    values = {
        axis: {axis_number(cell, workload, axis) for cell in cells} - {None}
        for axis in (*settings, *(f"{HYPERPARAMETER_PREFIX}{name}" for name in arguments))
    }
    varying = [
        axis
        for axis in values
        if len(values[axis]) > 1 and (axis in settings or not values[axis] <= SWITCH)
    ]
    axes = list[str]()
    following = set[str]()
    for axis in sorted(varying, key=lambda axis: (axis != INSTANCES, -len(values[axis]))):
        if axis.removeprefix(HYPERPARAMETER_PREFIX) not in following:
            axes.append(axis)
            following |= {
                name for series in find_series(cells, workload, axis) for name in series.following
            }
    return tuple(axes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Cells that differ along one axis.

    ``cells`` begin with the least value of the axis. ``following`` are the arguments that change
    with it.
    """

    cells: tuple[Cell, ...]
    following: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Point:
    """A cell on an axis.

    ``size`` is the value of the axis. ``numbers`` are the other arguments that are numbers.
    """

    cell: Cell
    size: float
    numbers: dict[str, float]


def find_series(
    cells: Sequence[Cell], workload: Workload, axis: str = INSTANCES
) -> tuple[Series, ...]:
    """Series along an axis, in the order of the cells. Each cell with a number on the axis is in
    one series.
    """
    equal: dict[str, list[_Point]] = {}
    for cell in cells:
        size = axis_number(cell, workload, axis)
        if size is None:
            continue
        arguments = {
            name: value
            for name, value in arguments_of(cell, workload).items()
            if f"{HYPERPARAMETER_PREFIX}{name}" != axis
        }
        numbers = {
            name: number
            for name, value in arguments.items()
            if (number := number_of(value)) is not None
        }
        texts = {name: value for name, value in arguments.items() if name not in numbers}
        settings = plain_values(_without(cell.settings, axis))
        rest = json.dumps([settings, texts, sorted(numbers)], sort_keys=True)
        equal.setdefault(rest, []).append(_Point(cell=cell, size=size, numbers=numbers))
    return tuple(series for points in equal.values() for series in _divide(points))


def _divide(points: Sequence[_Point]) -> Iterator[Series]:
    names = sorted(points[0].numbers)
    follow = _followers(points, names)
    for group in _group(points, [name for name in names if name not in follow]).values():
        ordered = sorted(group, key=lambda point: point.size)
        yield Series(
            cells=tuple(point.cell for point in ordered),
            following=tuple(
                name for name in follow if len({point.numbers[name] for point in group}) > 1
            ),
        )


def _followers(points: Sequence[_Point], names: Sequence[str]) -> list[str]:
    following: list[str] = []
    candidates = [name for name in names if not {point.numbers[name] for point in points} <= SWITCH]
    for name in sorted(candidates, key=lambda name: (_recurrence(points, name), name)):
        others = [other for other in names if other != name and other not in following]
        if all(
            len({point.size for point in group}) == len(group)
            for group in _group(points, others).values()
        ):
            following.append(name)
    return following


def _recurrence(points: Sequence[_Point], name: str) -> float:
    """The mean number of sizes at which a value of the argument occurs."""
    return len({(point.size, point.numbers[name]) for point in points}) / len(
        {point.numbers[name] for point in points}
    )


def _group(points: Sequence[_Point], names: Sequence[str]) -> dict[tuple[float, ...], list[_Point]]:
    """The points by their values of these arguments."""
    groups: dict[tuple[float, ...], list[_Point]] = {}
    for point in points:
        groups.setdefault(tuple(point.numbers[name] for name in names), []).append(point)
    return groups


def _without(settings: Settings, axis: str) -> Settings:
    if axis.startswith(HYPERPARAMETER_PREFIX):
        return settings
    return replace(settings, **{axis: getattr(Settings(instance=settings.instance), axis)})


def label_series(
    series: Sequence[Series], axis: str = INSTANCES, sized: Collection[str] = ()
) -> tuple[Cell, ...]:
    """One cell for each series, without what changes along it.

    Its label names what varies between the series, but for ``sized``: arguments that follow from
    the number of instances, which it names.
    """
    cells = []
    for line in series:
        first = line.cells[0]
        left_out = {*line.following, *sized, axis.removeprefix(HYPERPARAMETER_PREFIX)}
        given = {
            name: value for name, value in first.hyperparameters.items() if name not in left_out
        }
        cells.append(replace(first, hyperparameters=given, settings=_without(first.settings, axis)))
    return label_cells(cells)
