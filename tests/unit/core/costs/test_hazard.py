"""The rate at which capacity fails: what counts, and how the prior weighs."""

from dataclasses import replace

import pytest

from tests.unit.run_samples import completed_result, failed_result, make_attempt, make_cell
from traindyno.core.costs.hazard import FAULTS, PRIORS, observe_hazards, posterior
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.suite.pricing import SpotTerms

CELL = make_cell(instance_count=2)
DEMAND = (CELL.settings.instance, "on-demand")


def test_the_priors_are_stated() -> None:
    assert PRIORS["on-demand"].per_instance_hour == pytest.approx(419 / (54 * 24 * 2048), rel=0.02)
    assert all(prior.source for prior in PRIORS.values())


def test_all_cells_of_a_type_share_the_rate_and_the_prior_weighs_one_hour() -> None:
    # 170 s of training on two instances each
    lost = make_attempt(number=1, outcome=None, error="ServiceFault", billable_seconds=900.0, phase_seconds={})
    first = completed_result(CELL, 1)
    retried = replace(first, attempts=(lost, *first.attempts))
    other = completed_result(make_cell("0000000b", instance_count=2), 1)
    (found,) = observe_hazards([retried, other]).values()
    hours = 2 * (170 + 900 + 170) / 3600
    assert found.count == 1
    assert found.hours == pytest.approx(hours)
    assert found.per_instance_hour == pytest.approx((1 + 1.6e-4) / (hours + 1))
    assert (found.key, found.source) == (DEMAND, PRIORS["on-demand"].source)


@pytest.mark.parametrize("outcome", sorted(Outcome))
def test_faults_and_capacity_are_events_and_own_failures_are_not(outcome: Outcome) -> None:
    (found,) = observe_hazards([failed_result(CELL, 1, outcome)]).values()
    assert found.count == int(outcome in FAULTS)


def test_an_attempt_that_never_ran_is_no_event() -> None:
    refused = make_attempt(number=1, outcome=None, error="CapacityUnavailable", billable_seconds=0.0)
    first = completed_result(CELL, 1)
    (found,) = observe_hazards([replace(first, attempts=(refused, *first.attempts))]).values()
    assert found.count == 0


def test_restarts_within_a_spot_job_are_events_and_the_suite_may_give_the_prior() -> None:
    first = completed_result(CELL, 1)
    assert first.measured is not None
    spot = replace(
        first,
        price=replace(first.price, purchase="spot"),
        measured=replace(first.measured, interruptions=3),
    )
    given = {DEMAND[0]: SpotTerms(discount=0.6, interruptions_per_hour=0.5, checkpoint_hours=2.0)}
    found = observe_hazards([spot, first], given)
    assert found[DEMAND].count == 0
    hours = 2 * 170 / 3600
    assert found[DEMAND[0], "spot"].per_instance_hour == pytest.approx(3.5 / (hours + 1))
    assert found[DEMAND[0], "spot"].checkpoint_hours == 2.0


def test_more_events_make_the_rate_more_certain() -> None:
    found = [posterior(DEMAND, count=count, hours=10.0, given={}) for count in (1, 2, 5, 20)]
    ratios = [each.high / each.low for each in found]
    assert ratios == sorted(ratios, reverse=True)
    assert all(each.low < each.per_instance_hour < each.high for each in found)
    # 20 events: halves of chi-squared quantiles with 40 degrees of freedom, 24.433 and 59.342
    assert (found[-1].low * 11, found[-1].high * 11) == pytest.approx((24.433 / 2, 59.342 / 2), rel=1e-3)


def test_without_events_the_rate_is_next_to_nothing_on_demand_and_open_on_spot() -> None:
    assert posterior(DEMAND, count=0, hours=1.0, given={}).high < 1e-9
    spot = posterior((DEMAND[0], "spot"), count=0, hours=0.0, given={})
    assert spot.low < 1e-9
    # half of the chi-squared quantile with 1 degree of freedom: half an event in the hour of the prior
    assert spot.high == pytest.approx(5.0239 / 2, rel=1e-3)


def test_how_long_an_interrupted_job_waited_is_shared_by_a_type() -> None:
    """Two interruptions of 20 s without instances in all, and a start of 60 s, of which two of three were again."""
    first = completed_result(CELL, 1)
    assert first.measured is not None
    (attempt,) = first.attempts
    attempt = replace(attempt, phase_seconds={**attempt.phase_seconds, "interrupted": 20.0})
    waited = replace(first, attempts=(attempt,), measured=replace(first.measured, interruptions=2))
    (found,) = observe_hazards([waited, first]).values()
    assert found.wait_seconds == pytest.approx((20 + 60 * 2 / 3) / 2)
    (none,) = observe_hazards([first]).values()
    assert none.wait_seconds is None
