"""Limits of every document: its depth, its size, numbers that JSON and 64 bits can hold, and text
that UTF-8 can.
"""

import math
from collections.abc import Iterator, Mapping

from traindyno.core.documents.problems import join_path, shown, visible
from traindyno.core.errors import Problem

MOST_DEPTH = 100
MOST_VALUES = 50_000
LARGEST_INTEGER = 2**63 - 1


def excess_of(document: object) -> Problem | None:
    """The first limit that the document exceeds, with what is accepted; None if there is none.

    A part that occurs in several places counts once for each place.
    """
    waiting = [(document, "", 1)]
    count = 1
    while waiting:
        value, path, depth = waiting.pop()
        count += len(value) if isinstance(value, Mapping | list | tuple) else 0
        if count > MOST_VALUES:
            return Problem(path="", message=f"too many values, expected at most {MOST_VALUES}")
        if depth > MOST_DEPTH:
            return Problem(path="", message=f"too many levels, expected at most {MOST_DEPTH}")
        names = [str(name) for name in value] if isinstance(value, Mapping) else []
        for text in (
            word for word in (value, *names) if isinstance(word, str) and not _is_encodable(word)
        ):
            return Problem(
                path=path,
                message=f"got {visible(shown(text))}, expected text that UTF-8 can encode",
            )
        is_finite = not isinstance(value, float) or math.isfinite(value)
        if not is_finite or (isinstance(value, int) and abs(value) > LARGEST_INTEGER):
            return Problem(
                path=path, message=f"got {shown(value)}, expected a finite number within 64 bits"
            )
        waiting += [(inner, join_path(path, part), depth + 1) for part, inner in _parts(value)]
    return None


def _parts(value: object) -> Iterator[tuple[str | int, object]]:
    if isinstance(value, Mapping):
        yield from ((str(name), inner) for name, inner in value.items())
    elif isinstance(value, list | tuple):
        yield from enumerate(value)


def _is_encodable(text: str) -> bool:
    """Whether UTF-8 has the text; it has no lone surrogate, which JSON can spell, and which is no
    character.
    """
    return not any("\ud800" <= letter <= "\udfff" for letter in text)
