"""Suites of equal cells, and of cells of known ratios, on recorded noise: what they say is true,
and they say it where there is something to say.

The constants were chosen on three of these recordings (decisions 121 and 131); ``beside`` and
``quiet_later`` were made afterwards, on another machine. ``make nightly`` plays ten times as many
suites, of all ratios.
"""

import pytest

from tests.nightly import NIGHTLY
from tests.simulations.decisions import share_of
from tests.simulations.recorded_noise import (
    EQUAL,
    FASTEST,
    FOLDER,
    NONE_NEAR,
    Told,
    read_recording,
    tell,
)
from tests.simulations.repetitions import TIMES

SUITES = 40
MOST_FALSE = 0.01
OTHERS = ("quiet_later", "shared", "loaded", "quiet")
LEAST_SETTLED = {1.3: 0.6, 2.0: 0.95}
# Seconds of the suites of two cells when a single run's scatter was taken for 1 %; the other
# recordings were made later.
SECONDS_BEFORE = {
    ("quiet", 1.3): 30.2,
    ("loaded", 1.3): 32.6,
    ("quiet", 2.0): 17.6,
    ("loaded", 2.0): 21.7,
}
MOST_TIMES_LONGER = 1.5


def assert_true(told: Told) -> None:
    for kind in (FASTEST, NONE_NEAR, EQUAL):
        false = share_of(number < told.false[kind] for number in range(told.suites))
        assert false.share <= MOST_FALSE + false.error(MOST_FALSE), (kind, told)


@pytest.mark.parametrize("name", ["beside", *(OTHERS if NIGHTLY else [])])
@pytest.mark.parametrize(
    "ratios", [(1.0, 1.0, 2.1), *([(1.0, 1.0), (1.0, 1.03, 2.1)] if NIGHTLY else [])]
)
def test_equal_cells_are_not_told_apart(ratios: tuple[float, ...], name: str) -> None:
    assert_true(tell(read_recording(FOLDER / f"{name}.json"), ratios, SUITES * TIMES))


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["beside", *OTHERS])
@pytest.mark.parametrize("lead", LEAST_SETTLED)
def test_a_lead_is_found(lead: float, name: str) -> None:
    told = tell(read_recording(FOLDER / f"{name}.json"), (1.0, lead), SUITES * TIMES)
    assert_true(told)
    assert told.settled_share >= LEAST_SETTLED[lead]
    if (name, lead) in SECONDS_BEFORE:
        assert told.seconds <= MOST_TIMES_LONGER * SECONDS_BEFORE[name, lead]
