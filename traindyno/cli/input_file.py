"""Files that a command is given beside a suite: read strictly, every problem with its line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from traindyno.cli.suite_text import read_suite_text
from traindyno.core.errors import DocumentInvalid, TraindynoError

Value = TypeVar("Value")


class InputFileInvalid(TraindynoError):
    """A file named on the command line has problems; each line says where, what, and what would be accepted."""


def read_input_file(path: Path, parse: Callable[[dict[str, Any]], Value], *, fields: str) -> Value:
    """``fields`` are what the file's top level holds, for a text that is no mapping."""
    text = read_suite_text(path, fields=fields)
    try:
        return parse(text.document)
    except DocumentInvalid as error:
        lines = [f"{text.place(problem.path)}: {problem}" for problem in error.problems]
        raise InputFileInvalid("\n".join(lines)) from error
