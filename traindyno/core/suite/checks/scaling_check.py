"""Whether the arguments that a suite says to follow the size are arguments, vary, and part no equal cells."""

from collections.abc import Iterator, Sequence

from traindyno.core.documents.problems import shown
from traindyno.core.errors import Problem
from traindyno.core.suite.cells import expand_cells
from traindyno.core.suite.choices import Task
from traindyno.core.suite.series import SIZE, find_series
from traindyno.core.suite.suite import Cell, Suite

PATH = "scaling.with"


def check_scaling(suite: Suite) -> Iterator[Problem]:
    names = suite.scaling.following
    if not names:
        return
    if suite.workload.task is not Task.SCRIPT:
        yield Problem(path=PATH, message="only task script has arguments that can follow the size, expected auto")
        return
    cells = expand_cells(suite)
    problems = [*_check_names(names, cells)]
    yield from problems or _check_places(suite, names, cells)


def _check_names(names: Sequence[str], cells: Sequence[Cell]) -> Iterator[Problem]:
    varied = {
        name: len({cell.hyperparameters.get(name) for cell in cells}) > 1
        for cell in cells
        for name in cell.hyperparameters
    }
    accepted = ", ".join(sorted(name for name, varies in varied.items() if varies)) or "none: no argument varies"
    for index, name in enumerate(names):
        path = f"{PATH}[{index}]"
        if not varied.get(name):
            message = f"got {shown(name)}, expected an argument that differs between cells: {accepted}"
            yield Problem(path=path, message=message)
        elif name in names[:index]:
            yield Problem(path=path, message=f"got {shown(name)} again, expected each name once")


def _check_places(suite: Suite, names: Sequence[str], cells: Sequence[Cell]) -> Iterator[Problem]:
    """Two cells of one size can't be in one series."""
    for series in find_series(cells, suite.workload, following=names):
        sizes: dict[int, Cell] = {}
        for cell in series.cells:
            other = sizes.setdefault(getattr(cell.settings, SIZE), cell)
            if other is not cell:
                message = (
                    f"{other.label} and {cell.label} differ in {', '.join(names)} only: expected arguments with one"
                    " value for each instance_count in cells that are equal in all else"
                )
                yield Problem(path=PATH, message=message)
                return
