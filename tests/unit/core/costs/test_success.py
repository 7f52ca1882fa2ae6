from dataclasses import replace

from tests.unit.run_samples import completed_result, failed_result, make_attempt, make_cell
from traindyno.core.costs.success import measure_success
from traindyno.core.jobs.outcome import Outcome


def test_attempts_that_were_billed_count_and_those_without_an_instance_do_not() -> None:
    cell = make_cell()
    completed = completed_result(cell, 1)
    lost = make_attempt(number=1, outcome=None, error="ServiceFault", billable_seconds=900.0)
    refused = make_attempt(number=2, outcome=None, error="CapacityUnavailable", billable_seconds=0.0)
    retried = replace(completed, attempts=(lost, refused, *completed.attempts))
    diverged = replace(completed_result(cell, 2), outcome=Outcome.LOSS_DIVERGED)
    found = measure_success([retried, diverged, failed_result(cell, 3, Outcome.OUT_OF_MEMORY)])
    # two of the first run's attempts, and one of each other run; one of the four completed
    assert (found.successes, found.attempts) == (1, 4)


def test_a_run_that_a_person_stopped_says_nothing_about_its_cell() -> None:
    stopped = failed_result(make_cell(), 1, Outcome.STOPPED_BY_USER)
    assert measure_success([stopped]).attempts == 0
