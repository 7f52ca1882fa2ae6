"""From cattrs' nested errors to one flat list of problems: the path, what was found, and last what
is accepted.
"""

import json
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from decimal import Decimal
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from importlib.resources import files
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from cattrs.errors import (
    BaseValidationError,
    ClassValidationError,
    ForbiddenExtraKeysError,
    IterableValidationError,
    IterableValidationNote,
)

from traindyno.core.errors import Problem

# Control and format characters, lone surrogates, and the separators that end a line as \n does.
OBEYED = {"Cc", "Cf", "Cs", "Zl", "Zp"}
# Some languages and emoji need the last two, the joiners.
KEPT = {"\n", "\t", "\u200c", "\u200d"}
SHOWN_CHARACTERS = 60
LARGEST_SHOWN_INTEGER = 10**SHOWN_CHARACTERS  # Python writes no integer of more than 4300 digits
EXPECTED_OF_TYPE = {
    int: "an integer",
    float: "a number",
    Decimal: "a number",
    str: "text",
    bool: "true or false",
}
DELETE_IT = "delete it"
#: Fields of a suite that earlier versions accepted, with what to do instead
REMOVED = {
    "checkpoint_hours": DELETE_IT,
    "estimate_memory": DELETE_IT,
    "infra_check": DELETE_IT,
    "instance_preferences": DELETE_IT,
    "max_contended_repeats": DELETE_IT,
    "max_upload_seconds": DELETE_IT,
    "measure_anyway": DELETE_IT,
    "prefetch_factor": DELETE_IT,
    "probes": "delete it; the wait for data is measured in every run",
    "regions": DELETE_IT,
    "remote_debug": DELETE_IT,
    "scaling": DELETE_IT,
    "training_plan": DELETE_IT,
    "training_plans": "delete it; jobs run on demand, or on spot with purchase: spot",
    "warm_pool_seconds": DELETE_IT,
}


def visible(text: str) -> str:
    """The text with an escape, such as ``\\x1b`` or ``\\u202e``, in place of each character that
    would be obeyed.
    """
    return text if text.isprintable() else "".join(map(_visible, text))


def _visible(letter: str) -> str:
    if letter in KEPT or unicodedata.category(letter) not in OBEYED:
        return letter
    return letter.encode("unicode_escape").decode("ascii")


class Unexpected(ValueError):
    """A value is not what its place accepts."""

    def __init__(self, expected: str, got: object, *, meant: Sequence[str] = ()) -> None:
        self.expected = expected
        advice = advice_on("values", got)
        if advice is not None:
            super().__init__(f"got {shown(got)}: {advice}; expected {expected}")
        else:
            super().__init__(refusal(f"got {shown(got)}", expected, meant))


class FieldProblems(ValueError):
    """Problems of a mapping that is not one of our dataclasses; their paths are relative to it."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(str(problem) for problem in problems))


def shown(value: object) -> str:
    match value:
        case None:
            return "nothing"
        case Mapping():
            return f"a mapping with {', '.join(map(str, value)) or 'nothing in it'}"[
                :SHOWN_CHARACTERS
            ]
        case list() | tuple():
            return "a list"
        case int() if abs(value) >= LARGEST_SHOWN_INTEGER:
            return f"an integer of {value.bit_length()} bits"
        case _:
            return json.dumps(value, default=str, ensure_ascii=False)[:SHOWN_CHARACTERS]


def refusal(got: str, expected: str, meant: Sequence[str] = ()) -> str:
    """Message of a refusal: what is wrong first, then what was probably meant, and last what is
    accepted.
    """
    if not meant:
        return f"{got}, expected {expected}"
    return f"{got}: did you mean {' or '.join(map(shown, meant))}? Expected {expected}"


def close_to(got: object, accepted: Iterable[str], *, alike: float = 0.5) -> list[str]:
    """The accepted name of which ``got`` looks like a misspelling, if there is one.

    ``alike``: the share of their characters that they have at least in common.
    """
    return get_close_matches(got, list(accepted), n=1, cutoff=alike) if isinstance(got, str) else []


def one_of(choices: Iterable[str]) -> str:
    return f"one of {', '.join(choices)}"


def join_path(path: str, part: str | int) -> str:
    if isinstance(part, int):
        return f"{path}[{part}]"
    return f"{path}.{part}" if path else part


def without(value: Any, paths: Collection[str], at: str = "") -> Any:
    """A document without the values at these paths."""
    if not isinstance(value, Mapping):
        return value
    return {
        name: without(inner, paths, join_path(at, str(name)))
        for name, inner in value.items()
        if join_path(at, str(name)) not in paths
    }


def paths_of(value: Any, at: str = "") -> Iterator[str]:
    """The path of each value in a document."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield join_path(at, str(name))
            yield from paths_of(inner, join_path(at, str(name)))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield join_path(at, index)
            yield from paths_of(inner, join_path(at, index))


def advice_on(kind: str, word: object) -> str | None:
    """Advice on a word that people bring from Trainer, TRL, Lightning or Accelerate, where a suite
    has no such ``fields`` or ``values``.
    """
    return _words()[kind].get(word.casefold()) if isinstance(word, str) else None


@cache
def _words() -> Mapping[str, Mapping[str, str]]:
    data = files("traindyno.core.documents.data").joinpath("words.json")
    words: Mapping[str, Mapping[str, str]] = json.loads(data.read_text(encoding="utf-8"))
    return words


def unknown_field(path: str, name: object, accepted: Sequence[str]) -> Problem:
    if isinstance(name, str) and name in REMOVED:
        return Problem(
            path=join_path(path, name), message=f"the field {name} was removed; {REMOVED[name]}"
        )
    advice = advice_on("fields", name)
    if advice is not None:
        message = f"unknown field {shown(name)}: {advice}"
        return Problem(path=join_path(path, str(name)), message=message)
    message = refusal(f"unknown field {shown(name)}", one_of(accepted), close_to(name, accepted))
    return Problem(path=join_path(path, str(name)), message=message)


def problems_of(error: Exception, path: str) -> Iterator[Problem]:
    """Problems behind an error.

    ``path`` is the path of the value whose reading raised it.
    """
    match error:
        case ForbiddenExtraKeysError():
            accepted = [field.name for field in fields(error.cl)]
            for name in sorted(map(str, error.extra_fields)):
                yield unknown_field(path, name, accepted)
        case FieldProblems():
            for problem in error.problems:
                inner = (
                    problem.path
                    if problem.path.startswith("[")
                    else f".{problem.path}"
                    if problem.path
                    else ""
                )
                yield Problem(path=f"{path}{inner}".lstrip("."), message=problem.message)
        case BaseValidationError():
            yield from _nested_problems(error, path)
        case _:
            yield Problem(path=path, message=str(error))


def _nested_problems(error: BaseValidationError, path: str) -> Iterator[Problem]:
    assert isinstance(error, ClassValidationError | IterableValidationError)
    placed, unplaced = error.group_exceptions()
    for inner, note in placed:
        part = note.index if isinstance(note, IterableValidationNote) else note.name
        where = join_path(path, part)
        if isinstance(inner, KeyError):
            yield Problem(path=where, message=f"got nothing, expected {expected_of(note.type)}")
        else:
            yield from problems_of(inner, where)
    for inner in unplaced:
        yield from problems_of(inner, path)


def expected_of(kind: Any) -> str:
    """The values that a field of this type accepts, in words."""
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(expected_of(part) for part in get_args(kind) if part is not NoneType)
    origin = get_origin(kind) or kind
    if not isinstance(origin, type):
        return "a value"
    if issubclass(origin, StrEnum):
        return one_of(member.value for member in origin)
    if is_dataclass(origin) or issubclass(origin, Mapping):
        return "a mapping"
    return EXPECTED_OF_TYPE.get(origin, "a list")
