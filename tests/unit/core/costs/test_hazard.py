"""The rate at which capacity fails: what counts, and how the prior weighs."""

from dataclasses import replace

import pytest

from tests.unit.run_samples import (
    completed_result,
    failed_result,
    make_attempt,
    make_cell,
    remeasured,
)
from traindyno.core.costs.hazard import (
    MOST_SPAN,
    PRIORS,
    measure_success,
    observe_hazards,
    posterior,
)
from traindyno.core.jobs.outcome import FAULTS, OWN_FAILURES, SUCCESSES, Outcome
from traindyno.core.suite.goal import SpotTerms

CELL = make_cell(instance_count=2)
DEMAND = (CELL.settings.instance, "on-demand")


def test_the_priors_are_stated() -> None:
    assert PRIORS["on-demand"].per_instance_hour == pytest.approx(419 / (54 * 24 * 2048), rel=0.02)
    assert all(prior.source for prior in PRIORS.values())


def test_all_cells_of_a_type_share_the_rate_and_the_prior_weighs_one_hour() -> None:
    # 170 s of training on two instances each
    lost = make_attempt(
        number=1, outcome=None, error="ServiceFault", billable_seconds=900.0, phase_seconds={}
    )
    first = completed_result(CELL, 1)
    retried = replace(first, attempts=(lost, *first.attempts))
    other = completed_result(make_cell("0000000b", instance_count=2), 1)
    (hazard,) = observe_hazards([retried, other]).values()
    hours = 2 * (170 + 900 + 170) / 3600
    assert hazard.count == 1
    assert hazard.hours == pytest.approx(hours)
    assert hazard.shape == pytest.approx(1 + 1.6e-4)
    assert (hazard.key, hazard.source) == (DEMAND, PRIORS["on-demand"].source)


@pytest.mark.parametrize("outcome", sorted(Outcome))
def test_faults_and_capacity_are_events_and_own_failures_are_not(outcome: Outcome) -> None:
    (hazard,) = observe_hazards([failed_result(CELL, 1, outcome)]).values()
    assert hazard.count == int(outcome in FAULTS)


def test_an_attempt_without_a_run_is_no_event() -> None:
    refused = make_attempt(
        number=1, outcome=None, error="CapacityUnavailable", billable_seconds=0.0
    )
    first = completed_result(CELL, 1)
    (hazard,) = observe_hazards([replace(first, attempts=(refused, *first.attempts))]).values()
    assert hazard.count == 0


def test_restarts_within_a_spot_job_are_events_and_the_suite_may_give_the_prior() -> None:
    first = completed_result(CELL, 1)
    spot = replace(remeasured(first, interruptions=3), price=replace(first.price, purchase="spot"))
    given = {DEMAND[0]: SpotTerms(discount=0.6, interruptions_per_hour=0.5)}
    hazards = observe_hazards([spot, first], given)
    assert hazards[DEMAND].count == 0
    of_spot = hazards[DEMAND[0], "spot"]
    # three were seen, and 0.5 an hour of a job on two instances weighs as much as one hour
    assert of_spot.per_instance_hour == pytest.approx(3.25 / (of_spot.hours + 1))


def test_more_events_make_the_rate_more_certain() -> None:
    rates = [posterior(DEMAND, count=count, hours=10.0, given={}) for count in (4, 5, 10, 20)]
    ratios = [rate.high / rate.low for rate in rates]
    assert ratios == sorted(ratios, reverse=True)
    assert all(rate.low < rate.per_instance_hour < rate.high for rate in rates)
    # 20 events: halves of chi-squared quantiles with 40 degrees of freedom, 24.433 and 59.342
    assert (rates[-1].low * 11, rates[-1].high * 11) == pytest.approx(
        (24.433 / 2, 59.342 / 2), rel=1e-3
    )


def test_without_events_the_range_is_about_the_prior() -> None:
    """Without an hour of trials; an exponential distribution is below 3.69 times its mean in 97.5
    %.
    """
    demand = posterior(DEMAND, count=0, hours=0.0, given={})
    assert demand.per_instance_hour == pytest.approx(1.6e-4)
    assert demand.high == pytest.approx(3.69 * 1.6e-4, rel=1e-3)
    spot = posterior((DEMAND[0], "spot"), count=0, hours=0.0, given={})
    assert demand.low < 1e-9
    assert spot.low < 1e-9
    # once an hour, as long as the hours don't exclude it
    assert spot.high == 1.0
    for hours in (5.0, 50.0):
        seen = posterior((DEMAND[0], "spot"), count=0, hours=hours, given={})
        assert seen.high == pytest.approx(3.69 / (hours + 1), rel=1e-3)
    given = {DEMAND[0]: SpotTerms(discount=0.6, interruptions_per_hour=0.1)}
    stated = posterior((DEMAND[0], "spot"), count=0, hours=0.0, given=given)
    assert stated.high < spot.high


@pytest.mark.parametrize("purchase", ["on-demand", "spot"])
@pytest.mark.parametrize("hours", [0.0, 0.3, 10.0, 1e5])
def test_the_figure_is_in_its_range_and_few_events_do_not_raise_it(
    purchase: str, hours: float
) -> None:
    prior = PRIORS[purchase].per_instance_hour
    rates = [
        posterior((DEMAND[0], purchase), count=count, hours=hours, given={}) for count in range(10)
    ]
    assert all(rate.low <= rate.per_instance_hour <= rate.high for rate in rates)
    if purchase == "on-demand":
        assert all(rate.per_instance_hour <= prior for rate in rates[:4])
    else:  # the first interruptions count
        assert [rate.per_instance_hour for rate in rates] == [
            pytest.approx((count + prior) / (hours + 1)) for count in range(10)
        ]
    assert all(rate.high < MOST_SPAN * rate.low for rate in rates[4:])
    assert [rate.high for rate in rates] == sorted(rate.high for rate in rates)


def test_a_discount_alone_says_nothing_of_the_rate() -> None:
    rate = posterior(
        (DEMAND[0], "spot"), count=0, hours=0.0, given={DEMAND[0]: SpotTerms(discount=0.6)}
    )
    assert rate.per_instance_hour == pytest.approx(0.05)
    assert rate.source == PRIORS["spot"].source


def test_the_suite_gives_a_rate_of_a_job() -> None:
    given = {DEMAND[0]: SpotTerms(discount=0.6, interruptions_per_hour=0.8)}
    spot = completed_result(make_cell(instance_count=16), 1)
    (hazard,) = observe_hazards(
        [replace(spot, price=replace(spot.price, purchase="spot"))], given
    ).values()
    assert hazard.per_instance_hour * 16 == pytest.approx(0.8 / (hazard.hours + 1))


def test_a_restarting_launcher_on_demand_is_no_fault_of_the_service() -> None:
    """Unless the service reported an interruption."""
    restarted = remeasured(
        completed_result(CELL, 1), interruptions=3, lost_seconds=60.0, kept_seconds=9.0
    )
    (hazard,) = observe_hazards([restarted]).values()
    assert (hazard.count, hazard.wait_seconds, hazard.resumed) == (0, None, None)
    (attempt,) = restarted.attempts
    reported = replace(attempt, phase_seconds={**attempt.phase_seconds, "interrupted": 20.0})
    (hazard,) = observe_hazards([replace(restarted, attempts=(reported,))]).values()
    assert hazard.count == 3


def test_how_long_an_interrupted_job_waited_is_shared_by_a_type() -> None:
    """Two interruptions of 20 s without instances in all, and a start of 60 s, of which two of
    three were again.
    """
    first = completed_result(CELL, 1)
    (attempt,) = first.attempts
    attempt = replace(attempt, phase_seconds={**attempt.phase_seconds, "interrupted": 20.0})
    waited = replace(remeasured(first, interruptions=2), attempts=(attempt,))
    (hazard,) = observe_hazards([waited, first]).values()
    assert hazard.wait_seconds == pytest.approx((20 + 60 * 2 / 3) / 2)
    (none,) = observe_hazards([first]).values()
    assert none.wait_seconds is None


def test_own_failures_count_and_faults_of_the_service_do_not() -> None:
    cell = make_cell()
    completed = completed_result(cell, 1)
    lost = make_attempt(number=1, outcome=None, error="ServiceFault", billable_seconds=900.0)
    refused = make_attempt(
        number=2, outcome=None, error="CapacityUnavailable", billable_seconds=0.0
    )
    retried = replace(completed, attempts=(lost, refused, *completed.attempts))
    diverged = replace(completed_result(cell, 2), outcome=Outcome.LOSS_DIVERGED)
    success = measure_success([retried, diverged, failed_result(cell, 3, Outcome.OUT_OF_MEMORY)])
    # the first run's last attempt, and one of each other run; one of the three completed
    assert (success.successes, success.attempts) == (1, 3)


@pytest.mark.parametrize("outcome", sorted(set(Outcome) - set(SUCCESSES)))
def test_the_cells_own_failures(outcome: Outcome) -> None:
    success = measure_success([failed_result(make_cell(), 1, outcome)])
    assert (success.successes, success.attempts) == (0, int(outcome in OWN_FAILURES))
