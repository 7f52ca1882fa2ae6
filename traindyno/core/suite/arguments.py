"""The arguments of a cell's script, as SageMaker's training toolkit passes them: the suite's for
all cells, and the cell's own.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from math import isfinite
from typing import Any

from traindyno.core.documents.stored import JsonValue
from traindyno.core.run.workload import Workload
from traindyno.core.suite.cells import Cell

# The toolkit before version 5.1.4 joins the arguments with spaces and gives the line to a shell:
# what a shell would read in a word, and an empty word, which it drops.
READ_BY_SHELLS = re.compile(r"[\s;&|<>()$`\"'\\*?\[\]]|\A[~#]|\A\Z|\{.*(?:,|\.\.).*\}")


def arguments_of(cell: Cell, workload: Workload) -> Mapping[str, JsonValue]:
    """The arguments of the cell's job. The cell's own value of an argument replaces the one for all
    cells.
    """
    return {**workload.hyperparameters, **cell.hyperparameters}


def with_all_arguments(cell: Cell, workload: Workload) -> Cell:
    """The same cell, with the arguments of all cells among its own."""
    return replace(cell, hyperparameters=arguments_of(cell, workload))


def number_of(value: JsonValue) -> float | None:
    """A number, or the number that a text spells, since a script reads both alike; None for any
    other value.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None


def command_arguments(hyperparameters: Mapping[str, Any]) -> list[str]:
    """The arguments as a command line, ``--key value``, in the order of the keys.

    Booleans are written as Python prints them, mappings as ``k=v,k=v``.
    """
    arguments: list[str] = []
    for name in sorted(hyperparameters):
        arguments += [
            f"--{name}" if len(name) > 1 else f"-{name}",
            argument_text(hyperparameters[name]),
        ]
    return arguments


def argument_text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{name}={part}" for name, part in sorted(value.items()))
    return "" if value is None else str(list(value) if isinstance(value, tuple) else value)
