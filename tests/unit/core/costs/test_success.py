from dataclasses import replace

import pytest

from tests.unit.run_samples import completed_result, failed_result, make_attempt, make_cell
from traindyno.core.costs.hazard import measure_success
from traindyno.core.jobs.outcome import OWN_FAILURES, SUCCESSES, Outcome


def test_own_failures_count_and_faults_of_the_service_do_not() -> None:
    cell = make_cell()
    completed = completed_result(cell, 1)
    lost = make_attempt(number=1, outcome=None, error="ServiceFault", billable_seconds=900.0)
    refused = make_attempt(number=2, outcome=None, error="CapacityUnavailable", billable_seconds=0.0)
    retried = replace(completed, attempts=(lost, refused, *completed.attempts))
    diverged = replace(completed_result(cell, 2), outcome=Outcome.LOSS_DIVERGED)
    found = measure_success([retried, diverged, failed_result(cell, 3, Outcome.OUT_OF_MEMORY)])
    # the first run's last attempt, and one of each other run; one of the three completed
    assert (found.successes, found.attempts) == (1, 3)


@pytest.mark.parametrize("outcome", sorted(set(Outcome) - set(SUCCESSES)))
def test_what_counts_as_the_cells_own_failure(outcome: Outcome) -> None:
    found = measure_success([failed_result(make_cell(), 1, outcome)])
    assert (found.successes, found.attempts) == (0, int(outcome in OWN_FAILURES))
