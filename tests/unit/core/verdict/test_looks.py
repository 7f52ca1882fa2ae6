"""How often a search looks at its results, and which of the looks this one is."""

import pytest

from tests.unit.run_samples import completed_result, failed_result, make_cell, make_suite
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.statistics.selection import Looks
from traindyno.core.suite.choices import Search
from traindyno.core.suite.suite import Measurement
from traindyno.core.verdict.cell_trials import CellTrials, Noise
from traindyno.core.verdict.evidence import Evidence
from traindyno.core.verdict.goal_metric import Metric
from traindyno.core.verdict.verdict import FIRST_SEARCHED, FIRST_TRIALS, looks_of

CELL = make_cell()
DONE = completed_result(CELL, 1)
LOST = failed_result(CELL, 2, Outcome.OUT_OF_MEMORY)


def evidence_of(*measured: int, failed: int = 0, compared: tuple[int, ...] = ()) -> Evidence:
    """Cells with so many measured trials, each with ``failed`` ones beside; ``compared`` are others."""

    def cells(counts: tuple[int, ...]) -> tuple[CellTrials, ...]:
        return tuple(CellTrials(cell=CELL, measured=(DONE,) * count, others=(LOST,) * failed) for count in counts)

    return Evidence(
        baseline=None,
        trials=cells(measured),
        rows=(),
        metric=Metric.USD,
        noise=Noise(),
        parities=(),
        refused={},
        compared=cells(compared),
        survey=None,
    )


def looks(search: Search, trials: int, evidence: Evidence) -> tuple[int, int]:
    found = looks_of(make_suite(search=search, measurement=Measurement(trials=trials)), evidence)
    return found.index, found.count


def test_a_grid_is_judged_once() -> None:
    suite = make_suite(search=Search.GRID, measurement=Measurement(trials=6))
    assert looks_of(suite, evidence_of(6, 6)) == Looks()


@pytest.mark.parametrize(("done", "index"), [(0, 1), (3, 1), (4, 2), (6, 4), (7, 4)])
def test_elimination_looks_after_its_first_trials_and_after_each_further_one(done: int, index: int) -> None:
    assert FIRST_TRIALS == 3
    # the cell with the most trials decides
    assert looks(Search.ELIMINATE, 6, evidence_of(1, done) if done else evidence_of()) == (index, 4)
    assert looks(Search.ELIMINATE, 2, evidence_of(2)) == (1, 1)


def test_failed_trials_count_as_looked_at() -> None:
    assert looks(Search.ELIMINATE, 6, evidence_of(3, failed=2)) == (3, 4)


@pytest.mark.parametrize("more", [0, 1, 2])
def test_a_search_by_a_model_looks_by_the_cell_that_was_measured_least(more: int) -> None:
    trials = FIRST_SEARCHED + 3
    evidence = evidence_of(9, compared=(9, FIRST_SEARCHED + more))
    assert looks(Search.MODEL, trials, evidence) == (1 + more, 4)
    assert looks(Search.MODEL, trials, evidence_of(9)) == (1, 4)
