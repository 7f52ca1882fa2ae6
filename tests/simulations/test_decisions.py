"""The figures of docs/method.md hold: false claims, power, further trials, coverage.

TRAINDYNO_SIMULATIONS=10 is `make chaos`: ten times as many suites.
"""

from itertools import pairwise, product
from math import log

import pytest

from tests.simulations.decisions import further_trials, measure_coverage, simulate, wrong_with_looks
from tests.simulations.noise_models import (
    NoiseModel,
    Shape,
    correlated_in_cells,
    correlated_in_time,
    independent,
    noisy_leader,
    own_hosts,
    shared_hosts,
    unequal_spreads,
)

CELLS = (2, 8, 32)
EQUAL = (independent, own_hosts, shared_hosts, correlated_in_time, unequal_spreads, noisy_leader)
FIVE_PERCENT = log(1.05)
TOLERANCE = log(1.02)


@pytest.mark.parametrize(
    ("model", "lead", "cells"),
    [
        *product(EQUAL, [0.0], CELLS),
        # No rule can keep this and find a difference of 5 % with two cells (see docs/method.md).
        *product([correlated_in_cells], [0.0], [8, 32]),
        # All other cells are worse than the first by just the tolerance.
        *product([independent, noisy_leader], [TOLERANCE], CELLS),
    ],
)
def test_a_false_claim_is_made_in_at_most_one_suite_of_twenty(
    model: NoiseModel, lead: float, cells: int
) -> None:
    wrong = simulate(model, Shape(levels=(0.0, *[lead] * (cells - 1)), trials=5)).wrong
    assert wrong.share <= 0.05 + wrong.error(0.05)


@pytest.mark.parametrize("cells", CELLS)
def test_lead_of_five_percent_is_found_in_four_suites_of_five(cells: int) -> None:
    """More trials never find it less often."""
    outcomes = [
        simulate(independent, Shape(levels=(0.0, *[FIVE_PERCENT] * (cells - 1)), trials=trials))
        for trials in (4, 6, 8)
    ]
    for outcome in outcomes:
        assert outcome.decided.share >= 0.8 - outcome.decided.error(0.8)
        assert outcome.wrong.share <= 0.05
    for fewer, more in pairwise(outcomes):
        assert more.decided.share >= fewer.decided.share - more.decided.error(fewer.decided.share)
        assert more.superior.share >= fewer.superior.share - more.superior.error(
            fewer.superior.share
        )


@pytest.mark.parametrize("cells", CELLS)
def test_the_named_further_trials_settle_four_suites_of_five(cells: int) -> None:
    settled = further_trials(cells, trials=3)
    assert settled.share >= 0.8 - settled.error(0.8)


@pytest.mark.parametrize("cells", [2, 8])
@pytest.mark.parametrize("model", [independent, noisy_leader])
def test_looking_after_every_job_claims_no_more_than_one_look(
    model: NoiseModel, cells: int
) -> None:
    wrong = wrong_with_looks(model, cells, trials=9)
    assert wrong.share <= 0.05 + wrong.error(0.05)


@pytest.mark.parametrize("cells", [2, 8])
def test_intervals_hold_the_truth_wherever_a_search_stops(cells: int) -> None:
    """The last place is the worst of equal cells, which is a choice too: its interval has to hold
    all the same.
    """
    coverage = measure_coverage((0.0,) * cells, trials=9, is_race=True)
    for share in (coverage.expected, coverage.against_baseline, coverage.last):
        assert share.share >= 0.95 - share.error(0.95)


@pytest.mark.parametrize("cells", CELLS)
@pytest.mark.parametrize("lead", [0.0, FIVE_PERCENT])
def test_intervals_hold_the_truth_as_often_as_they_say(cells: int, lead: float) -> None:
    coverage = measure_coverage((0.0, *[lead] * (cells - 1)), trials=5)
    for share in (coverage.expected, coverage.against_baseline):
        assert 0.93 - share.error(0.95) <= share.share <= 0.97 + share.error(0.97)
