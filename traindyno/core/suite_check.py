"""What a well-formed suite must also satisfy: bounds, one of each alternative, axes that mean something."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from traindyno.core.cells import agrees, expand_cells, grid_points, included_point, is_same, make_cell
from traindyno.core.combinations import find_impossible
from traindyno.core.document_problems import shown
from traindyno.core.errors import Problem
from traindyno.core.instance_types import close_instance_types, find_instance_type
from traindyno.core.suite import Purchase, Suite, Task
from traindyno.core.suite_bounds import check_bounds, check_setting
from traindyno.core.suite_converter import HYPERPARAMETER_PREFIX, suite_converter
from traindyno.core.workload_check import check_workload

NAME = re.compile(r"[a-zA-Z0-9](?:-?[a-zA-Z0-9])*")
NAME_CHARACTERS = 40
SCRIPT_AXES = {"instance", "instance_count", "strategy", "compiler", "image"}
CELL_LIMIT = 10_000


def check_suite(suite: Suite) -> Iterator[Problem]:
    problems = [*check_parts(suite)]
    yield from problems
    if not problems:
        yield from _check_points(suite)


def check_parts(suite: Suite) -> Iterator[Problem]:
    yield from _check_name(suite.name)
    yield from check_bounds(suite)
    yield from check_workload(suite.workload)
    yield from _check_purchase(suite)
    yield from _check_matrix(suite)
    for path, point in _points(suite):
        for name, value in point.items():
            yield from _check_value(f"{path}.{name}", name, value)


def _check_name(name: str) -> Iterator[Problem]:
    if not NAME.fullmatch(name) or len(name) > NAME_CHARACTERS:
        expected = f"1 to {NAME_CHARACTERS} letters, digits and single hyphens, as in albert-scaling"
        yield Problem(path="name", message=f"expected {expected}, got {shown(name)}")


def _check_purchase(suite: Suite) -> Iterator[Problem]:
    if suite.purchase is Purchase.SPOT and suite.warm_pool_seconds:
        message = "expected 0 with purchase spot, which can't keep instances warm, got"
        yield Problem(path="warm_pool_seconds", message=f"{message} {suite.warm_pool_seconds}")
    for name in suite.training_plans:
        yield from _check_value(f"training_plans.{name}", "instance", name)


def _check_matrix(suite: Suite) -> Iterator[Problem]:
    if not suite.matrix:
        yield Problem(path="matrix", message="expected at least one axis, such as instance: [ml.g5.xlarge], got none")
    if "instance" not in suite.matrix and "instance" not in suite.training:
        yield Problem(
            path="matrix.instance", message="expected a list of instance types here or one in training, got nothing"
        )
    cells = 1
    for name, values in suite.matrix.items():
        cells *= max(len(values), 1)
        yield from _check_axis(suite, name, values)
    if cells > CELL_LIMIT:
        yield Problem(path="matrix", message=f"expected at most {CELL_LIMIT} cells, got {cells}")


def _check_axis(suite: Suite, name: str, values: tuple[Any, ...]) -> Iterator[Problem]:
    path = f"matrix.{name}"
    if not values:
        yield Problem(path=path, message="expected at least one value, got an empty list")
    if name in suite.training:
        yield Problem(path=path, message=f"expected {name} in training or in matrix, got it in both")
    if suite.workload.task is Task.SCRIPT and name not in SCRIPT_AXES and not name.startswith(HYPERPARAMETER_PREFIX):
        accepted = ", ".join([*sorted(SCRIPT_AXES), f"{HYPERPARAMETER_PREFIX}<name>"])
        yield Problem(path=path, message=f"expected one of {accepted}: a script does not see {name}")
    if suite.workload.task is not Task.SCRIPT and name.startswith(HYPERPARAMETER_PREFIX):
        yield Problem(path=path, message="expected a setting: only task script has hyperparameters of its own")
    for index, value in enumerate(values):
        if any(is_same(value, earlier) for earlier in values[:index]):
            yield Problem(
                path=f"{path}[{index}]", message=f"expected each value once, got {shown(_plain(value))} again"
            )
        yield from _check_value(f"{path}[{index}]", name, value)


def _points(suite: Suite) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield "training", suite.training
    yield "baseline", suite.baseline
    for section in ("include", "exclude"):
        for index, entry in enumerate(getattr(suite, section)):
            yield f"{section}[{index}]", entry


def _check_value(path: str, name: str, value: Any) -> Iterator[Problem]:
    if name != "instance":
        yield from check_setting(path, name, value)
    elif find_instance_type(value) is None:
        close = close_instance_types(value)
        hint = f" (did you mean {' or '.join(close)}?)" if close else ""
        yield Problem(
            path=path,
            message=f"expected a training instance type, local.cpu or local.gpu{hint}, got {shown(value)}",
        )


def _check_points(suite: Suite) -> Iterator[Problem]:
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
    for cell in expand_cells(suite):
        for impossible in find_impossible(cell, suite.workload):
            concerned.setdefault((impossible.field, impossible.reason), []).append(cell.label)
    for (field, reason), labels in concerned.items():
        section = "matrix" if field in suite.matrix else "training" if field in suite.training else "matrix"
        more = f" and {len(labels) - 1} more" if len(labels) > 1 else ""
        yield Problem(
            path=f"{section}.{field}", message=f"{reason} (in cell {labels[0]}{more}; exclude it or change it)"
        )


def _point_text(point: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{name}: {_plain(value)}" for name, value in point.items()) + "}"


def _plain(value: Any) -> Any:
    return suite_converter().unstructure(value)
