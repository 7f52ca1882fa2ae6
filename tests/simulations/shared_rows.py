"""What runs of one job may do to each other, and what their job does to all of them, each with 2 to
8 cells.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import exp, log
from typing import Any

from tests.simulations.processes import level
from tests.simulations.shared_suites import OWN, Sharing

CELLS = (2, 4, 8)
TRIALS = (2, 3, 4, 5)
LEADS = {
    2: (0.0, 0.03),
    4: (0.0, 0.03, 0.05, 0.08),
    8: (0.0, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.10),
}
SLOW_FIRST_STEPS = level(lambda step: 2 if step < 20 else 1, 1.0)
# Two cells: the place is a line only, for which two or three jobs have no degree of freedom to
# spare.
TWO_CELLS = ((2, 2), (2, 3))


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedRow:
    """A row of the tables of shared jobs.

    ``sharing`` makes the suite of cells with these levels and so many trials. No rule can decide
    the open shapes, (cells, trials): with two cells and two or three jobs nothing tells an effect
    of the place from noise.
    """

    name: str
    sharing: Callable[[tuple[float, ...], int], Sharing]
    open_shapes: frozenset[tuple[int, int]] = frozenset()


def equal(row: SharedRow, cells: int, trials: int) -> Sharing:
    return row.sharing((0.0,) * cells, trials)


def led(row: SharedRow, cells: int, trials: int) -> Sharing:
    return row.sharing(tuple(log(1 + lead) for lead in LEADS[cells]), trials)


def _row(name: str, *open_shapes: tuple[int, int], **changes: Any) -> SharedRow:
    def sharing(levels: tuple[float, ...], trials: int) -> Sharing:
        return replace(Sharing(levels=levels, trials=trials), **changes)

    return SharedRow(name=name, sharing=sharing, open_shapes=frozenset(open_shapes))


def _leak(share: float) -> Callable[[int, int], float]:
    return lambda place, _: place * log(1 + share)


def _drift(share: float) -> Callable[[int, int], float]:
    return lambda place, runs: log(1 + share) * place / max(1, runs - 1)


def _heat(share: float, places: float) -> Callable[[int, int], float]:
    return lambda place, _: log(1 + share) * (1 - exp(-place / places))


def _cold(share: float) -> Callable[[int, int], float]:
    return lambda place, _: log(1 + share) * (place == 0)


def _cold_and_leaking(share: float, leak: float) -> Callable[[int, int], float]:
    return lambda place, runs: _cold(share)(place, runs) + _leak(leak)(place, runs)


def _slow_hosts(share: float) -> Callable[[random.Random], float]:
    return lambda source: log(1 + share) * (source.random() < 1 / 3)


def _hosts(deviation: float) -> Callable[[random.Random], float]:
    return lambda source: source.gauss(0, deviation)


def _split(levels: tuple[float, ...], trials: int) -> Sharing:
    return Sharing(levels=levels, trials=trials, part=max(1, len(levels) // 2))


def _two_types(levels: tuple[float, ...], trials: int) -> Sharing:
    """Every second cell is on the other type."""
    return Sharing(levels=levels[::2] + levels[1::2], trials=trials, groups=2, host=_hosts(0.01))


def _one_noisy(levels: tuple[float, ...], trials: int) -> Sharing:
    return Sharing(levels=levels, trials=trials, own=(OWN,) * (len(levels) - 1) + (4 * OWN,))


SHARED_ROWS = (
    _row("nothing but noise of 0.5 % and hosts of 1 %", (2, 2)),
    *(
        _row(
            f"each run slower than the one before by {share:.1%}".replace("%", " %"),
            *open_shapes,
            effect=_leak(share),
        )
        for share, open_shapes in ((0.003, TWO_CELLS[:1]), (0.01, TWO_CELLS[:1]), (0.03, TWO_CELLS))
    ),
    *(
        _row(
            f"one job in three on a host slower by {share:.0%}".replace("%", " %"),
            (2, 2),
            host=_slow_hosts(share),
        )
        for share in (0.03, 0.10)
    ),
    *(
        _row(
            f"drift of {share:.0%} over each job".replace("%", " %"),
            *TWO_CELLS,
            effect=_drift(share),
        )
        for share in (0.02, 0.05)
    ),
    _row("heat: slower by 5 %, time constant of two runs", *TWO_CELLS, effect=_heat(0.05, 2.0)),
    _row("first run of a job slower by 10 %", *TWO_CELLS, (4, 2), effect=_cold(0.10)),
    _row("the same, after a throw-away run", (2, 2), effect=_cold(0.10), throw_away=True),
    _row(
        "first run slower by 10 %, and each by 1 % than the one before",
        *TWO_CELLS,
        (4, 2),
        effect=_cold_and_leaking(0.10, 0.01),
    ),
    _row(
        "first run of a job takes twice as long for 20 steps",
        (2, 2),
        first=SLOW_FIRST_STEPS,
    ),
    SharedRow(
        name="a group needs two jobs", sharing=_split, open_shapes=frozenset({(2, 2), (4, 2)})
    ),
    SharedRow(
        name="cells on two instance types",
        sharing=_two_types,
        open_shapes=frozenset({(2, 2), (4, 2), (8, 2)}),
    ),
    SharedRow(
        name="one cell scatters by 2 %, the others by 0.5 %",
        sharing=_one_noisy,
        open_shapes=frozenset({(2, 2)}),
    ),
)
