from dataclasses import replace

import pytest

from tests.unit.run_samples import completed_result, failed_result, make_attempt, make_cell
from traindyno.core.costs.success import SuccessRate, measure_success
from traindyno.core.jobs.outcome import Outcome


def test_cost_is_divided_by_the_success_rate() -> None:
    rate = SuccessRate(successes=2, attempts=5)
    assert rate.rate == pytest.approx(0.4)
    assert rate.per_success(10.0) == pytest.approx(25.0)


def test_without_a_success_its_cost_is_unknown() -> None:
    assert SuccessRate(successes=0, attempts=3).per_success(10.0) is None
    assert SuccessRate(successes=0, attempts=0).rate is None


@pytest.mark.parametrize(
    # by scipy's beta distribution
    ("successes", "attempts", "low", "high"),
    [(3, 3, 0.464417, 1.0), (2, 5, 0.094390, 0.790583), (0, 4, 0.0, 0.444763), (19, 20, 0.789181, 0.994551)],
)
def test_the_interval_of_the_success_rate(successes: int, attempts: int, low: float, high: float) -> None:
    found = SuccessRate(successes=successes, attempts=attempts).interval()
    assert found.low == pytest.approx(low, abs=1e-5)
    assert found.high == pytest.approx(high, abs=1e-5)


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
