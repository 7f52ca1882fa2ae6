"""Whose a fault of the service is: cells of a type share them, unless one has more than chance
explains.
"""

from dataclasses import replace
from functools import cache
from math import comb

import pytest

from tests.unit.run_samples import completed_result, failed_result, make_cell
from traindyno.core.costs.hazard import find_uneven_faults
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import RunResult
from traindyno.figures.distributions import SIGNIFICANCE

TRIALS = 5


@cache
def completed(name: str, instance: str, trial: int) -> RunResult:
    return completed_result(make_cell(name, instance=instance), trial)


def cell_results(
    name: str, *, retried: int = 0, lost: int = 0, instance: str = "ml.p4d.24xlarge"
) -> list[RunResult]:
    """Five trials: of some the first attempt was lost, others left nothing.

    A job that was lost ran as long.
    """
    cell = make_cell(name, instance=instance)
    done = [completed(name, instance, trial) for trial in range(1, TRIALS - lost + 1)]
    again = [
        replace(
            result,
            attempts=(
                replace(result.attempts[0], outcome=None, error="ServiceFault"),
                *result.attempts,
            ),
        )
        for result in done[:retried]
    ]
    gone = [failed_result(cell, TRIALS - number, Outcome.INTERNAL_ERROR) for number in range(lost)]
    return [*again, *done[retried:], *gone]


def flagged(*cells: list[RunResult]) -> list[str]:
    return sorted(find_uneven_faults({results[0].run.cell.cell_id: results for results in cells}))


@pytest.mark.parametrize("cells", [2, 4, 8])
@pytest.mark.parametrize("retried", range(6))
def test_faults_explained_by_chance_are_shared(cells: int, retried: int) -> None:
    """Alike in all cells, or one in one of them."""
    assert (
        flagged(*(cell_results(f"cell {number}", retried=retried) for number in range(cells))) == []
    )
    others = [cell_results(f"cell {number}") for number in range(1, cells)]
    assert flagged(cell_results("cell 0", retried=1), *others) == []


@pytest.mark.parametrize("elsewhere", [0, 1, 2])
@pytest.mark.parametrize("cells", [2, 3, 4, 8])
def test_a_cell_owns_a_share_of_faults_rarer_than_one_of_ten_suites_by_chance(
    cells: int, elsewhere: int
) -> None:
    for count in range(2, TRIALS + 1):
        others = [cell_results(f"cell {number}") for number in range(2, cells)]
        uneven = find_uneven_faults(
            {
                "cell 0": cell_results("cell 0", retried=count),
                "cell 1": cell_results("cell 1", retried=elsewhere),
                **{results[0].run.cell.cell_id: results for results in others},
            }
        )
        runs = [TRIALS + count, TRIALS + elsewhere, *(TRIALS for _ in others)]
        share = runs[0] / sum(runs)
        total = count + elsewhere
        p = sum(
            comb(total, k) * share**k * (1 - share) ** (total - k) for k in range(count, total + 1)
        )
        assert ("cell 0" in uneven) == (p < SIGNIFICANCE)
        if "cell 0" in uneven:
            assert uneven["cell 0"].p == pytest.approx(p)
            assert (uneven["cell 0"].count, uneven["cell 0"].all_count) == (count, total)


def test_a_trial_without_a_trace_counts_if_no_other_cell_had_a_fault() -> None:
    one = cell_results("cell 0", lost=1)
    other = cell_results("cell 1")
    assert flagged(one, other) == ["cell 0"]
    assert flagged(one, cell_results("cell 1", retried=1)) == []
    assert flagged(one, cell_results("cell 1", lost=1)) == []


def test_nothing_tells_a_cell_from_its_type_if_it_is_alone_on_it() -> None:
    alone = cell_results("cell 0", lost=3)
    assert flagged(alone) == []
    assert flagged(alone, cell_results("cell 1", instance="ml.p5.48xlarge")) == []
