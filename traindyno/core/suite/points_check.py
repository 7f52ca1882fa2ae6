"""The points of a suite's grid: a baseline that is there, exclusions that match, and cells that can run."""

from collections.abc import Iterator, Mapping
from typing import Any

from traindyno.core.documents.problems import shown
from traindyno.core.errors import Problem
from traindyno.core.suite.cells import agrees, expand_cells, grid_points, included_point, make_cell
from traindyno.core.suite.combinations import find_impossible
from traindyno.core.suite.fallback_cells import accepted_types, cell_on
from traindyno.core.suite.suite import Cell, Suite
from traindyno.core.suite.suite_converter import suite_converter


def check_points(suite: Suite) -> Iterator[Problem]:
    problems = [*_check_baseline(suite), *_check_excluded(suite)]
    if not problems:
        problems = [*_check_included(suite), *_check_combinations(suite)]
    yield from problems


def _check_baseline(suite: Suite) -> Iterator[Problem]:
    yield from _check_axis_names(suite, "baseline", suite.baseline)
    if not any(agrees(point, suite.baseline) for point in grid_points(suite)):
        yield Problem(
            path="baseline", message=f"expected values that the matrix holds, got {_point_text(suite.baseline)}"
        )


def _check_excluded(suite: Suite) -> Iterator[Problem]:
    for index, entry in enumerate(suite.exclude):
        path = f"exclude[{index}]"
        unknown = list(_check_axis_names(suite, path, entry))
        yield from unknown
        if not entry:
            yield Problem(
                path=path, message="expected at least one axis, got an empty mapping, which would exclude everything"
            )
        elif not unknown and not any(agrees(point, entry) for point in grid_points(suite)):
            yield Problem(path=path, message=f"expected values that the matrix holds, got {_point_text(entry)}")


def _check_axis_names(suite: Suite, path: str, point: Mapping[str, Any]) -> Iterator[Problem]:
    for name in point:
        if name not in suite.matrix:
            axes = ", ".join(suite.matrix)
            yield Problem(path=f"{path}.{name}", message=f"expected an axis of the matrix ({axes}), got {shown(name)}")


def _check_included(suite: Suite) -> Iterator[Problem]:
    grid = [make_cell(suite, point).cell_id for point in grid_points(suite)]
    seen = set(grid)
    for index, entry in enumerate(suite.include):
        cell_id = make_cell(suite, included_point(suite, entry)).cell_id
        if cell_id in seen:
            message = f"expected a cell that is not there yet, got {_point_text(entry)}, which is one already"
            yield Problem(path=f"include[{index}]", message=message)
        seen.add(cell_id)


def _check_combinations(suite: Suite) -> Iterator[Problem]:
    """Each reason once, with the cells that it concerns."""
    concerned: dict[tuple[str, str], list[str]] = {}
    for cell in _cells_wherever_they_run(suite):
        for impossible in find_impossible(cell, suite.workload):
            concerned.setdefault((impossible.field, impossible.reason), []).append(cell.label)
    for (field, reason), labels in concerned.items():
        section = "matrix" if field in suite.matrix else "training" if field in suite.training else "matrix"
        more = f" and {len(labels) - 1} more" if len(labels) > 1 else ""
        yield Problem(
            path=f"{section}.{field}", message=f"{reason} (in cell {labels[0]}{more}; exclude it or change it)"
        )


def _cells_wherever_they_run(suite: Suite) -> Iterator[Cell]:
    for cell in expand_cells(suite):
        yield from (cell_on(suite, cell, name) for name in accepted_types(suite, cell.settings.instance))


def _point_text(point: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{name}: {suite_converter().unstructure(value)}" for name, value in point.items()) + "}"
