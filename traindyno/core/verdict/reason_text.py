"""Reasons that several trials or cells share, each said once."""

import re
from collections.abc import Iterable, Sequence

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_NUMBERS = re.compile(r"#(?:, #)*(?:, …)?")


def merge_reasons(reasons: Iterable[str]) -> list[str]:
    """One text for reasons that differ in their numbers only: the one with the largest last number, and of how many."""
    kinds: dict[str, list[str]] = {}
    for reason in dict.fromkeys(reasons):
        kinds.setdefault(_NUMBERS.sub("#", _NUMBER.sub("#", reason)), []).append(reason)
    return [_largest(alike) for alike in kinds.values()]


def _largest(alike: Sequence[str]) -> str:
    if len(alike) == 1:
        return alike[0]
    return f"{max(alike, key=_last_number)} (the largest of {len(alike)})"


def _last_number(reason: str) -> float:
    return float(_NUMBER.findall(reason)[-1])


def reasons_of_labels(found: Iterable[tuple[str, str]]) -> list[str]:
    """Pairs of a label and a reason: "of A and of B, reason", with the labels of each reason."""
    labels: dict[str, list[str]] = {}
    for label, reason in found:
        labels.setdefault(reason, []).append(f"of {label}")
    return [f"{' and '.join(named)}, {reason}" for reason, named in labels.items()]
