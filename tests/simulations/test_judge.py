"""``traindyno.judge`` on recorded noise: equal cells are seldom told apart, and a lead is found.

The runs of a recording are drawn, or a stretch of successive ones is played to the cells in random
order.
"""

from collections.abc import Sequence
from functools import cache
from random import Random
from statistics import fmean

import pytest

from tests.simulations.decisions import Share, share_of
from tests.simulations.recorded_noise import FOLDER, read_recording
from tests.simulations.repetitions import repetitions
from traindyno import judge
from traindyno.figures.judge import TrialsClaim, TrialsFinding
from traindyno.figures.selection import Relation

TABLES = 100
MOST_FALSE = 0.05
LEFT_OUT = {"a": range(6, 9), "b": range(3)}
LEAST_FOUND = {"quiet": 0.95, "loaded": 0.6}


@cache
def mean_steps(name: str) -> Sequence[float]:
    return [fmean(run) for run in read_recording(FOLDER / f"{name}.json").runs]


def stretch(source: Random, runs: Sequence[float], count: int) -> list[float]:
    first = source.randrange(len(runs))
    return [runs[(first + place) % len(runs)] for place in range(count)]


def finding_of(
    source: Random, name: str, trials: int, lead: float, is_drawn: bool
) -> TrialsFinding:
    count = 2 * trials
    runs = mean_steps(name)
    noise = source.choices(runs, k=count) if is_drawn else stretch(source, runs, count)
    factors = {"a": 1.0, "b": lead}
    cells = source.sample([*factors] * trials, count)
    rows = [
        {"config": cell, "place": place, "seconds": factors[cell] * run}
        for place, (cell, run) in enumerate(zip(cells, noise, strict=True))
    ]
    return judge(rows, value="seconds", cell="config", order="place")


def told_apart(name: str, trials: int, lead: float, is_drawn: bool) -> Share:
    key = f"judge {name} {trials} {lead} {is_drawn}"
    return share_of(
        finding.claim is TrialsClaim.BEST and (lead == 1 or finding.best.cell == "a")
        for source in repetitions(TABLES, key)
        for finding in [finding_of(source, name, trials, lead, is_drawn)]
    )


@pytest.mark.parametrize("is_drawn", [True, False], ids=["drawn", "in random order"])
@pytest.mark.parametrize("trials", [3, 5, 10])
@pytest.mark.parametrize("name", LEAST_FOUND)
def test_equal_cells_are_seldom_told_apart(name: str, trials: int, is_drawn: bool) -> None:
    false = told_apart(name, trials, 1.0, is_drawn)
    assert false.share <= MOST_FALSE + false.error(MOST_FALSE), false


@pytest.mark.parametrize("name", LEAST_FOUND)
def test_a_cell_with_twice_the_time_is_found(name: str) -> None:
    share = told_apart(name, 5, 2.0, is_drawn=False)
    assert share.share >= LEAST_FOUND[name], share


def blocks_finding(source: Random, name: str, blocks: int, repeats: int) -> TrialsFinding:
    """Of two equal cells in blocks that are up to three times as slow as each other; each cell has
    no trial in a third of them. Repeats in a block share a run's noise and half of their own.
    """
    runs = [*mean_steps(name)]
    usual = fmean(runs)
    rows = []
    for block in range(blocks):
        factor = source.uniform(1, 3)
        for cell in ("a", "b"):
            if repeats == 1 and block in LEFT_OUT[cell]:
                continue
            shared = source.choice(runs)
            own = source.choices(runs, k=repeats)
            noise = own if repeats == 1 else [shared + (run - usual) / 2 for run in own]
            rows += [{"config": cell, "day": f"{block}", "seconds": factor * run} for run in noise]
    # equal rows are refused
    numbered = [row | {"number": number} for number, row in enumerate(rows)]
    return judge(numbered, value="seconds", cell="config", block="day")


@pytest.mark.parametrize(("blocks", "repeats"), [(9, 1), (2, 5)], ids=["lost", "repeated"])
@pytest.mark.parametrize("name", LEAST_FOUND)
def test_equal_cells_in_unlike_blocks_are_seldom_told_apart(
    name: str, blocks: int, repeats: int
) -> None:
    false = share_of(
        blocks_finding(source, name, blocks, repeats).claim is TrialsClaim.BEST
        for source in repetitions(2 * TABLES, f"blocks {name} {blocks} {repeats}")
    )
    assert false.share <= MOST_FALSE + false.error(MOST_FALSE), false


@pytest.mark.parametrize("cells", [3, 6])
@pytest.mark.parametrize("name", LEAST_FOUND)
def test_none_of_several_equal_cells_is_called_worse(name: str, cells: int) -> None:
    def rows(source: Random) -> list[dict[str, object]]:
        noise = source.choices(mean_steps(name), k=5 * cells)
        return [
            {"config": place % cells, "place": place, "seconds": run}
            for place, run in enumerate(noise)
        ]

    false = share_of(
        bool(judge(rows(source), value="seconds", cell="config").related(Relation.BEATEN))
        for source in repetitions(2 * TABLES, f"worse {name} {cells}")
    )
    assert false.share <= MOST_FALSE + false.error(MOST_FALSE), false


@pytest.mark.parametrize("column", ["node", "day"])
@pytest.mark.parametrize("name", LEAST_FOUND)
def test_equal_cells_on_unlike_hosts_of_their_own_are_seldom_told_apart(
    name: str, column: str
) -> None:
    """Three hosts of each cell with three trials each; the deviation between hosts is 10 %."""

    def rows(source: Random) -> list[dict[str, object]]:
        speeds = {(cell, host): source.gauss(1, 0.1) for cell in "ab" for host in range(3)}
        return [
            {"config": cell, column: f"{cell}{host}", "seconds": speed * run, "number": number}
            for (cell, host), speed in speeds.items()
            for number, run in enumerate(source.choices(mean_steps(name), k=3))
        ]

    host = column if column == "node" else None
    block = column if column == "day" else None
    false = share_of(
        judge(rows(source), value="seconds", cell="config", host=host, block=block).claim
        is TrialsClaim.BEST
        for source in repetitions(2 * TABLES, f"hosts {name} {column}")
    )
    assert false.share <= MOST_FALSE + false.error(MOST_FALSE), false
