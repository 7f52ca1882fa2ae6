"""The axes of a suite's matrix: known, filled, each value once and within its bounds."""

from collections.abc import Iterator
from typing import Any

from traindyno.core.documents.problems import shown
from traindyno.core.errors import Problem
from traindyno.core.instances.instance_types import close_instance_types, find_instance_type
from traindyno.core.suite.cells import is_same
from traindyno.core.suite.settings_points import HYPERPARAMETER_PREFIX
from traindyno.core.suite.suite import Suite, Task
from traindyno.core.suite.suite_bounds import check_setting
from traindyno.core.suite.suite_converter import suite_converter

SCRIPT_AXES = {"instance", "instance_count", "strategy", "compiler", "image"}
CELL_LIMIT = 10_000


def check_matrix(suite: Suite) -> Iterator[Problem]:
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
                path=f"{path}[{index}]",
                message=f"expected each value once, got {shown(suite_converter().unstructure(value))} again",
            )
        yield from check_value(f"{path}[{index}]", name, value)


def check_value(path: str, name: str, value: Any) -> Iterator[Problem]:
    if name != "instance":
        yield from check_setting(path, name, value)
    elif find_instance_type(value) is None:
        close = close_instance_types(value)
        hint = f" (did you mean {' or '.join(close)}?)" if close else ""
        yield Problem(
            path=path,
            message=f"expected a training instance type, local.cpu or local.gpu{hint}, got {shown(value)}",
        )
