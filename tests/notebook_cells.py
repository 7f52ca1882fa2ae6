"""The code of a notebook, and its cells run one after another in a namespace, as a kernel does."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def code_cells(notebook: Path) -> list[str]:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def run_cells(notebook: Path) -> Iterator[Any]:
    """What each cell shows: the value of its last line; None if that is no expression."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, source in enumerate(code_cells(notebook)):
        tree = ast.parse(source)
        place = f"{notebook.name}[{number}]"
        *before, last = tree.body
        if not isinstance(last, ast.Expr):
            before.append(last)
        exec(compile(ast.Module(body=before, type_ignores=[]), place, "exec"), names)
        yield (
            eval(compile(ast.Expression(last.value), place, "eval"), names)
            if isinstance(last, ast.Expr)
            else None
        )
