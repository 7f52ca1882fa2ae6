"""The axes and points of a suite's grid: known axes, values within bounds, each once, and cells
that can run.
"""

import json
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from traindyno.core.documents.field_description import Bound, description_of
from traindyno.core.documents.plain import plain_values
from traindyno.core.documents.problems import join_path, refusal, shown
from traindyno.core.errors import Problem
from traindyno.core.instances.instance_types import close_instance_types, find_instance_type
from traindyno.core.run.settings import (
    HYPERPARAMETER_PREFIX,
    BatchSearch,
    fixed_for_scripts,
    seen_by_scripts,
    setting_descriptions,
)
from traindyno.core.suite.arguments import argument_text
from traindyno.core.suite.cells import (
    baseline_point,
    grid_points,
    is_in_grid,
    kept_points,
    make_cell,
    typed,
)
from traindyno.core.suite.checks.combinations import find_impossible
from traindyno.core.suite.checks.job_limits_check import HYPERPARAMETER_CHARACTERS
from traindyno.core.suite.choices import Task
from traindyno.core.suite.suite import Suite

CELL_LIMIT = 10_000
RUN_LIMIT = 100_000


def check_bounds(part: Any, path: str = "") -> Iterator[Problem]:
    """Check all numbers of a dataclass and its parts, each by its field's description."""
    for field in fields(part):
        value = getattr(part, field.name)
        description = description_of(field)
        where = join_path(path, field.name)
        if is_dataclass(value):
            yield from check_bounds(value, where)
        elif isinstance(value, Mapping):
            for name, part_of_it in value.items():
                if is_dataclass(part_of_it):
                    yield from check_bounds(part_of_it, join_path(where, name))
        elif description is not None and description.bound is not None and value is not None:
            yield from _check(where, value, description.bound)


def check_value(path: str, name: str, value: Any) -> Iterator[Problem]:
    """Check the value of one setting."""
    description = setting_descriptions().get(name)
    if name == "instance":
        yield from check_instance_type(path, value)
    elif is_dataclass(value):
        yield from check_bounds(value, path)
    elif description is not None and description.bound is not None and value is not None:
        yield from _check(path, value, description.bound)


def check_instance_type(path: str, name: str) -> Iterator[Problem]:
    if find_instance_type(name) is None:
        expected = "a training instance type, local.cpu or local.gpu"
        yield Problem(
            path=path, message=refusal(f"got {shown(name)}", expected, close_instance_types(name))
        )


def _check(path: str, value: Any, bound: Bound) -> Iterator[Problem]:
    if not bound.accepts(value):
        yield Problem(
            path=path,
            message=f"got {shown(value) if isinstance(value, int) else value}, expected {bound}",
        )


def check_matrix(suite: Suite) -> Iterator[Problem]:
    if "instance" not in suite.matrix and "instance" not in suite.training:
        yield Problem(
            path="matrix.instance",
            message="got nothing, expected a list of instance types here or one in training",
        )
    cells = 1
    for name, values in suite.matrix.items():
        cells *= max(len(values), 1)
        yield from _check_axis(suite, name, values)
    if cells > CELL_LIMIT:
        yield Problem(path="matrix", message=f"got {cells} cells, expected at most {CELL_LIMIT}")
    elif cells * suite.measurement.trials > RUN_LIMIT:
        message = (
            f"got {cells} cells × {suite.measurement.trials} trials, expected at most {RUN_LIMIT} "
            "runs"
        )
        yield Problem(path="measurement.trials", message=message)


def _check_axis(suite: Suite, name: str, values: tuple[Any, ...]) -> Iterator[Problem]:
    path = f"matrix.{name}"
    if not values:
        yield Problem(path=path, message="got an empty list, expected at least one value")
    if name in suite.training:
        yield Problem(
            path=path, message=f"{name} is in training and in matrix, expected it in one of them"
        )
    yield from _check_is_seen(suite, path, name, seen_by_scripts())
    seen = set()
    for index, value in enumerate(values):
        told = typed(_as_told(name, value))
        if told in seen:
            yield Problem(
                path=f"{path}[{index}]",
                message=f"got {shown(plain_values(value))} again, expected each value once",
            )
        seen.add(told)
        yield from check_value(f"{path}[{index}]", name, value)


def _as_told(name: str, value: Any) -> Any:
    """The value, or the text of it that a script gets as an argument."""
    return argument_text(value) if name.startswith(HYPERPARAMETER_PREFIX) else value


def check_fixed(suite: Suite) -> Iterator[Problem]:
    """Settings that no axis has; a script gets the number that a search finds as an argument."""
    points = [("training", suite.training)]
    points += [(f"include[{index}]", point) for index, point in enumerate(suite.include)]
    for section, point in points:
        for name, value in point.items():
            if not isinstance(value, BatchSearch):
                yield from _check_is_seen(suite, f"{section}.{name}", name, fixed_for_scripts())


def _check_is_seen(suite: Suite, path: str, name: str, seen: Collection[str]) -> Iterator[Problem]:
    is_argument = name.startswith(HYPERPARAMETER_PREFIX)
    if suite.workload.task is Task.SCRIPT and not is_argument and name not in seen:
        accepted = ", ".join([*sorted(seen), f"{HYPERPARAMETER_PREFIX}<name>"])
        message = f"a script does not see {name}, expected one of {accepted}"
        yield Problem(path=path, message=f"{message} (an argument of the script)")
    elif suite.workload.task is not Task.SCRIPT and is_argument:
        yield Problem(
            path=path, message="only task script has hyperparameters of its own, expected a setting"
        )


def check_points(suite: Suite) -> Iterator[Problem]:
    problems = [*_check_baseline(suite), *_check_excluded(suite)] or [*_check_left(suite)]
    if not problems:
        problems = [*_check_included(suite), *_check_combinations(suite), *_check_documents(suite)]
    yield from problems


def _check_baseline(suite: Suite) -> Iterator[Problem]:
    yield from _check_axis_names(suite, "baseline", suite.baseline)
    if not is_in_grid(suite, suite.baseline):
        yield Problem(
            path="baseline",
            message=f"got {_point_text(suite.baseline)}, expected values that the matrix holds",
        )


def _check_excluded(suite: Suite) -> Iterator[Problem]:
    for index, point in enumerate(suite.exclude):
        path = f"exclude[{index}]"
        unknown = list(_check_axis_names(suite, path, point))
        yield from unknown
        if not point:
            yield Problem(
                path=path,
                message="an empty mapping excludes every cell, expected at least one axis",
            )
        elif not unknown and not is_in_grid(suite, point):
            yield Problem(
                path=path,
                message=f"got {_point_text(point)}, expected values that the matrix holds",
            )


def _check_left(suite: Suite) -> Iterator[Problem]:
    if not suite.baseline and next(kept_points(suite), None) is None:
        cells = math.prod(map(len, suite.matrix.values()))
        message = f"got entries that exclude {cells} of {cells} cells, expected at least one left"
        yield Problem(path="exclude", message=message)


def _check_axis_names(suite: Suite, path: str, point: Mapping[str, Any]) -> Iterator[Problem]:
    for name in point:
        if name not in suite.matrix:
            axes = ", ".join(suite.matrix) or "it has none"
            yield Problem(
                path=f"{path}.{name}",
                message=f"got {shown(name)}, expected an axis of the matrix: {axes}",
            )


def _check_included(suite: Suite) -> Iterator[Problem]:

    def told_id(point: Mapping[str, Any]) -> str:
        chosen = {**suite.training, **point}
        told = {name: _as_told(name, value) for name, value in chosen.items()}
        return make_cell(suite, told).cell_id

    seen = set(map(told_id, grid_points(suite)))
    baseline = baseline_point(suite)
    for index, point in enumerate(suite.include):
        cell_id = told_id({**baseline, **point})
        if cell_id in seen:
            message = f"{_point_text(point)} is already a cell of the grid, expected a further one"
            yield Problem(path=f"include[{index}]", message=message)
        seen.add(cell_id)


def _check_combinations(suite: Suite) -> Iterator[Problem]:
    """Report each reason once, with the cells that it concerns."""
    concerned: dict[tuple[str, str], list[str]] = {}
    for cell in suite.cells:
        for impossible in find_impossible(cell, suite.workload):
            concerned.setdefault((impossible.field, impossible.reason), []).append(cell.label)
    for (field, reason), labels in concerned.items():
        section = (
            "matrix"
            if field in suite.matrix
            else "training"
            if field in suite.training
            else "matrix"
        )
        more = f" and {len(labels) - 1} more" if len(labels) > 1 else ""
        yield Problem(
            path=f"{section}.{field}",
            message=f"{reason} (in cell {labels[0]}{more}; exclude it or change it)",
        )


def _check_documents(suite: Suite) -> Iterator[Problem]:
    """Check the settings of a cell, which a job of a built-in task gets as one text."""
    if suite.workload.task is Task.SCRIPT:
        return
    for cell in suite.cells:
        size = len(json.dumps(plain_values(cell.settings)))
        if size > HYPERPARAMETER_CHARACTERS:
            yield Problem(
                path="training",
                message=(
                    f"the settings of cell {cell.label}: got {size} characters as JSON, expected "
                    f"at most {HYPERPARAMETER_CHARACTERS} (a job's limit)"
                ),
            )


def _point_text(point: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{name}: {plain_values(value)}" for name, value in point.items()) + "}"
