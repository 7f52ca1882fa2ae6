"""How often losses are called different, and a seed decides, over
many drawn suites.
"""

import random

import pytest

from tests.unit.core.measurement.test_loss_parity import templates
from tests.unit.core.verdict.test_seeds_of_trials import judged_by_seeds, quality_suite
from tests.unit.run_samples import known
from traindyno.core.measurement.loss_parity import ParityFinding, check_loss_parities
from traindyno.core.verdict.cell_row import CellQuality
from traindyno.core.verdict.verdict import Finding
from traindyno.figures.selection import Relation

SUITES = 100


@pytest.mark.parametrize(("cells", "trials"), [(2, 2), (2, 5), (8, 3)])
def test_equal_cells_with_scattering_runs_differ_in_at_most_one_suite_of_twenty(
    cells: int, trials: int
) -> None:
    """Run-to-run spread of 2 %, as large as the tolerance: the interval widens, and no cell is
    refused for it.
    """
    source = random.Random(20261121)
    repetitions = 400
    wrong = 0
    for _ in range(repetitions):
        levels = [[2 * source.lognormvariate(0, 0.02) for _ in range(trials)] for _ in range(cells)]
        parities = check_loss_parities([templates(cell) for cell in levels])
        wrong += any(parity.finding is ParityFinding.DIFFERS for parity in parities)
    assert wrong / repetitions <= 0.05 + 2 * (0.05 * 0.95 / repetitions) ** 0.5


@pytest.mark.parametrize("cells", [2, 4])
@pytest.mark.parametrize("cv", [0.10, 0.03])
def test_equal_cells_with_a_seed_for_each_trial_win_in_one_suite_of_twenty(
    cells: int, cv: float
) -> None:
    source = random.Random(f"{cells} {cv}")
    verdicts = [
        judged_by_seeds(quality_suite(cells), source, cv, shows_seed=True) for _ in range(SUITES)
    ]
    wrong = sum(verdict.finding is Finding.RECOMMENDED for verdict in verdicts)
    assert wrong / SUITES <= 0.05 + 2 * (0.05 * 0.95 / SUITES) ** 0.5


@pytest.mark.parametrize("cells", [2, 4])
@pytest.mark.parametrize("cv", [0.10, 0.03])
def test_with_one_seed_nothing_is_claimed_about_other_seeds(cells: int, cv: float) -> None:
    source = random.Random(f"{cells} {cv}")
    for _ in range(10):
        verdict = judged_by_seeds(quality_suite(cells), source, cv, shows_seed=False)
        assert verdict.finding is Finding.ONE_SEED
        assert {rival.relation for rival in verdict.rivals} == {Relation.UNKNOWN}
        assert verdict.against_baseline is None or not verdict.against_baseline.is_detected
        quality = known(verdict.best).part(CellQuality)
        estimates = [quality.seconds, quality.usd, quality.loss, quality.accuracy]
        assert [estimate.interval for estimate in estimates if estimate] == [None] * 4
