"""Forms of a row.

E: four equal cells. L: cells at 0, 3, 5 and 8 %. One: the noise is in one cell, which is worse.
"""

import random
from collections.abc import Iterator
from functools import partial
from math import log
from typing import Any

from tests.simulations.processes import Process
from tests.simulations.suites.figures import Row
from tests.simulations.suites.levels import LevelNoise
from tests.simulations.suites.play import EQUAL, LEVELS, Situation, play

FORMS = {"E": EQUAL, "L": LEVELS}


def row(name: str, situation: Situation, **changes: Any) -> Row:
    """The row of a situation, with changes of its fields."""
    return Row(name=name, play=partial(play, situation), **changes)


def in_all(name: str, process: Process, *, forms: str = "EL", **changes: Any) -> Iterator[Row]:
    for form in forms:
        yield row(
            f"{name} [{form}]",
            Situation(levels=FORMS[form], processes=dict.fromkeys(range(4), process)),
            **changes,
        )


def in_one(name: str, process: Process, *, truth: float, other: float = 0.0, **changes: Any) -> Row:
    """The noise is in the second cell, which is truly slower by ``truth``; the first one is slower
    by ``other``.
    """
    seconds = process(random.Random(0), 1).long_run_seconds
    levels = (log(1 + other), log((1 + truth) / seconds), log(1.06), log(1.08))
    return row(name, Situation(levels=levels, processes={1: process}), **changes)


def as_is(name: str, process: Process, *, other: float, **changes: Any) -> Row:
    """As ``in_one``, with no other difference than the noise."""
    truth = process(random.Random(0), 1).long_run_seconds - 1
    return in_one(
        f"{name} in one (+{truth * 100:.1f} %); another +{other * 100:.0f} %",
        process,
        truth=truth,
        other=other,
        **changes,
    )


def of_trials(
    name: str,
    noise: LevelNoise,
    *,
    forms: str = "EL",
    excepted: tuple[str, ...] = (),
    slower: float = 0.0,
    **changes: Any,
) -> Iterator[Row]:
    """The rows of a noise between trials, with changes of their situation."""
    for form in forms:
        levels = tuple(level + slower for level in FORMS[form])
        yield row(
            f"{name} [{form}]", Situation(levels=levels, noise=noise, **changes), excepted=excepted
        )
