"""How failed trials raise what a cell takes, and how its trials are counted."""

from math import log

import pytest

from tests.unit.run_samples import completed_result, failed_result, make_cell
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.verdict.cell_trials import CellTrials, Retries
from traindyno.core.verdict.quantity import projected_seconds, projected_usd, samples_per_second

CELL = make_cell()
DONE = tuple(completed_result(CELL, trial) for trial in (1, 2))
LOST = failed_result(CELL, 3, Outcome.OUT_OF_MEMORY)


def test_a_failed_trial_is_paid_again_with_the_error_of_a_share() -> None:
    found = CellTrials(cell=CELL, measured=DONE, others=(LOST,)).retries(projected_usd)
    # two of three succeeded; Jeffreys: (2 + 0.5) / (3 + 1)
    assert found.log_factor == pytest.approx(log(3 / 2))
    assert found.variance == pytest.approx((1 - 0.625) / (3 * 0.625))


def test_the_factor_is_one_without_failures_for_rates_and_without_any_success() -> None:
    assert CellTrials(cell=CELL, measured=DONE, others=()).retries(projected_seconds) == Retries()
    assert CellTrials(cell=CELL, measured=DONE, others=(LOST,)).retries(samples_per_second) == Retries()
    assert CellTrials(cell=CELL, measured=(), others=(LOST,)).retries(projected_usd) == Retries()
