"""Suites whose runs share jobs keep the limits of docs/method.md.

`make nightly` checks all rows and shapes.
"""

from itertools import product
from math import sqrt
from statistics import fmean

import pytest

from tests.simulations.repetitions import TIMES
from tests.simulations.shared_rows import CELLS, SHARED_ROWS, TRIALS, SharedRow, equal, led
from tests.simulations.shared_suites import SharedFigures, measure_shared
from tests.simulations.suites.figures import (
    ENOUGH_POWER,
    LEAST_COVERED,
    LEAST_WITHIN,
    MOST_UNDECIDED,
    MOST_WRONG,
)

SHAPES = tuple(product(CELLS, TRIALS)) if TIMES > 1 else ((4, 3),)
TELLING = (
    "by 3.0 %",
    "slower by 10 %",
    "heat",
    "first run slower",
    "two jobs",
    "two instance types",
)
ROWS = [
    row
    for row in SHARED_ROWS
    if TIMES > 1 or row.name.endswith(TELLING) or row.name.startswith(TELLING)
]
SUITES = 4 if TIMES == 1 else 2 * TIMES


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_effects_of_a_job_on_its_runs_lead_to_no_wrong_answer(row: SharedRow) -> None:
    alike = []
    ahead = []
    for shape in SHAPES:
        alike.append(measure_shared(equal(row, *shape), f"{row.name} equal {shape}", SUITES))
        ahead.append(shared := measure_shared(led(row, *shape), f"{row.name} led {shape}", SUITES))
        if shape not in row.open_shapes:
            _check_decides(shared, shape)
    both = [*alike, *ahead]
    suites = SUITES * len(both)
    assert fmean(measured.figures.wrong for measured in both) <= MOST_WRONG + _errors(
        MOST_WRONG, suites
    )
    covered = [share for measured in ahead if (share := measured.ratios) is not None]
    assert fmean(covered) >= LEAST_COVERED - _errors(LEAST_COVERED, SUITES * len(covered))
    figures = [share for measured in both if (share := measured.figures.covered) is not None]
    assert fmean(figures) >= LEAST_COVERED - _errors(LEAST_COVERED, SUITES * len(figures))


def _check_decides(measured: SharedFigures, shape: tuple[int, int]) -> None:
    figures = measured.figures
    assert figures.power < ENOUGH_POWER or figures.undecided <= MOST_UNDECIDED + _errors(
        MOST_UNDECIDED, SUITES
    ), shape
    assert figures.within >= LEAST_WITHIN - _errors(LEAST_WITHIN, SUITES), shape


def _errors(share: float, suites: int) -> float:
    return 2 * sqrt(share * (1 - share) / suites)
