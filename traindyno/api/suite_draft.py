"""A suite document while its defaults are filled in."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traindyno.core.errors import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Default:
    path: str
    value: Any
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {json.dumps(self.value, ensure_ascii=False)} ({self.reason})"


class SuiteDraft:
    """A suite document, and what was said of it.

    ``problems`` say what has to be named by hand; ``open_paths`` are the paths that they name, and
    what is missing because of them. In ``document``, a section that is no mapping is left to the
    check of the form. Relative paths start at ``folder``.
    """

    def __init__(self, document: dict[str, Any], folder: Path) -> None:
        self.document = document
        self.folder = folder
        self.defaults: list[Default] = []
        self.cautions: list[str] = []
        self.problems: list[Problem] = []
        self.open_paths: set[str] = set()

    def give(self, path: str, value: Any, reason: str) -> None:
        section, _, name = path.rpartition(".")
        place: Any = self.document
        for part in filter(None, section.split(".")):
            place = place.setdefault(part, {}) if isinstance(place, dict) else None
        if isinstance(place, dict) and name not in place:
            place[name] = value
            self.defaults.append(Default(path=path, value=value, reason=reason))

    def refuse(self, path: str, message: str, *, leaves_open: Iterable[str] = ()) -> None:
        """Note a problem.

        ``leaves_open`` are values that can't be determined for this reason, and need not be asked
        for.
        """
        self.problems.append(Problem(path=path, message=message))
        self.open_paths |= {path, *leaves_open}
