"""What is left of a malformed suite without its malformed parts, so that the rest is checked in the same go."""

import re
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from traindyno.core.errors import Problem

PART = re.compile(r"[^.\[\]]+|\[\d+\]")
# Stand in for what is missing; a problem that they alone would cause is not reported.
PLACEHOLDERS: Mapping[str, Any] = {
    "name": "placeholder",
    "goal": "cheapest",
    "workload": {
        "task": "script",
        "examples": 1,
        "source": "s3://any/source.tar.gz",
        "entry_point": "train.py",
    },
    "matrix": {},
    "limits": {"max_usd": 1, "max_hours": 1, "max_job_seconds": 3600},
}


def remains_of(document: Mapping[str, Any], problems: Sequence[Problem]) -> dict[str, Any]:
    """The document without the parts that the problems name, and with placeholders for what is missing."""
    remains = deepcopy(dict(document))
    # Later places first, so that the index of an earlier one still holds.
    for problem in sorted(problems, key=lambda problem: _parts(problem.path), reverse=True):
        _remove(remains, _parts(problem.path))
    for section in {_parts(problem.path)[0] for problem in problems if problem.path} & PLACEHOLDERS.keys():
        placeholder, found = PLACEHOLDERS[section], remains.get(section)
        if isinstance(placeholder, Mapping) and isinstance(found, dict):
            remains[section] = {**placeholder, **found}
        else:
            remains[section] = deepcopy(placeholder)
    return remains


def stands_in(document: Mapping[str, Any], problem: Problem, malformed: Iterable[Problem]) -> bool:
    """Whether a problem of the remains is one of the document itself."""
    section = _parts(problem.path)[:1]
    if section == ("workload",):
        # Its parts explain one another: with one of them malformed, the others can't be judged.
        return not any(_parts(other.path)[:1] == section for other in malformed)
    at: Any = document
    for part in _parts(problem.path):
        try:
            at = at[_index(part)]
        except (KeyError, IndexError, TypeError):
            return False
    return True


def _remove(at: Any, parts: tuple[str, ...]) -> None:
    try:
        for part in parts[:-1]:
            at = at[_index(part)]
        if parts:
            del at[_index(parts[-1])]
    except (KeyError, IndexError, TypeError):
        return  # what is missing needs no removal


def _parts(path: str) -> tuple[str, ...]:
    """``matrix.hyperparameters.rate[1]``: an axis keeps its dot, for it is one key."""
    parts = tuple(PART.findall(path))
    if "hyperparameters" in parts[1:2] and parts[0] != "workload" and len(parts) > 2:
        return (parts[0], f"hyperparameters.{parts[2]}", *parts[3:])
    return parts


def _index(part: str) -> str | int:
    return int(part[1:-1]) if part.startswith("[") else part
