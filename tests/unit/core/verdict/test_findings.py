"""Each figure of the findings on fixed executions is the recorded one, to nine digits."""

import os
from collections.abc import Iterator, Mapping, Sequence
from math import isclose
from typing import Any

import pytest

from tests.simulations import findings

WRITES = bool(os.environ.get("TRAINDYNO_WRITE_FINDINGS"))
NINE_DIGITS = 5e-10
# Differences of nearly equal numbers: a range, a spread of equal trials.
NOTHING = 1e-12


def differences(recorded: Any, found: Any, path: str = "") -> Iterator[str]:
    if isinstance(recorded, Mapping) and isinstance(found, Mapping):
        for name in sorted({*recorded, *found}):
            yield from differences(recorded.get(name), found.get(name), f"{path}/{name}")
    elif isinstance(recorded, list) and isinstance(found, Sequence) and len(recorded) == len(found):
        for number, (one, other) in enumerate(zip(recorded, found, strict=True)):
            yield from differences(one, other, f"{path}/{number}")
    elif isinstance(recorded, float) and isinstance(found, float | int):
        if not isclose(recorded, found, rel_tol=NINE_DIGITS, abs_tol=NOTHING):
            yield f"{path}: {recorded} → {found}"
    elif recorded != found:
        yield f"{path}: {recorded} → {found}"


@pytest.mark.parametrize("name", findings.PLAYED)
def test_no_figure_changes(name: str) -> None:
    found = {play: findings.numbers_of(verdict()) for play, verdict in findings.PLAYED[name]()}
    if WRITES:
        findings.write(name, found)
    assert list(differences(findings.read(name), found)) == []
