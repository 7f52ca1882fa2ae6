"""A suite file to a checked Suite; a wrong one to lines that say where, what, and what would be accepted."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traindyno.cli.suite_text import SuiteText, read_suite_text
from traindyno.core.errors import SuiteInvalid, TraindynoError
from traindyno.core.suites.suite import Suite
from traindyno.core.suites.suite_file import parse_suite


class SuiteFileInvalid(TraindynoError):
    """A suite file with problems, each with its file and line."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = tuple(lines)
        super().__init__("\n".join(lines))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSuite:
    """``document`` is the text's own content, before any default; it is what the state machine gets."""

    text: SuiteText
    suite: Suite

    @property
    def document(self) -> dict[str, Any]:
        return self.text.document


def load_suite(path: Path) -> LoadedSuite:
    text = read_suite_text(path)
    try:
        return LoadedSuite(text=text, suite=parse_suite(text.document))
    except SuiteInvalid as error:
        lines = [f"{text.place(problem.path)}: {problem}" for problem in error.problems]
        raise SuiteFileInvalid(lines) from error
