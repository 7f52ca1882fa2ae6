"""How often a search looks at its results, and which share of the significance each look has."""

from tests.unit.run_samples import completed_result, make_cell, make_suite
from traindyno.core.statistics.selection import Looks
from traindyno.core.suite.choices import Search
from traindyno.core.suite.suite import Measurement
from traindyno.core.verdict.cell_trials import CellTrials, Noise
from traindyno.core.verdict.evidence import Evidence
from traindyno.core.verdict.goal_metric import Metric
from traindyno.core.verdict.verdict import looks_of

CELL = make_cell()
DONE = completed_result(CELL, 1)


def looks(search: Search, trials: int) -> Looks:
    evidence = Evidence(
        baseline=None,
        trials=(CellTrials(cell=CELL, measured=(DONE,), others=()),),
        rows=(),
        metric=Metric.USD,
        noise=Noise(),
        parities=(),
        refused={},
        compared=(),
    )
    return looks_of(make_suite(search=search, measurement=Measurement(trials=trials)), evidence)


def test_a_grid_is_judged_once() -> None:
    assert looks(Search.GRID, 6) == Looks()


def test_each_further_trial_of_a_race_has_the_same_share() -> None:
    shares = [looks(Search.RACE, trials).significance for trials in (1, 2, 6)]
    assert shares == [0.05, 0.05, 0.01]
