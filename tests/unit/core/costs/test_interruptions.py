"""How much longer interruptions make a run, by hand."""

from dataclasses import replace
from math import exp

import pytest

from tests.unit.run_samples import completed_result, make_attempt, make_cell
from traindyno.core.costs.interruptions import Restart, expect_delay, with_interruptions
from traindyno.core.costs.projection import project_run
from traindyno.core.suite.pricing import SpotTerms

NONE = SpotTerms(discount=0.5, interruptions_per_hour=0.5)
AT_ONCE = Restart(waiting=0, training=0)


def factor_of(terms: SpotTerms, hours: float, restart: Restart = AT_ONCE) -> float:
    delay = expect_delay(terms, hours * 3600, restart)
    assert delay is not None
    return delay.factor


def test_interruptions_lengthen_a_training_by_what_is_done_again() -> None:
    # 0.5 an hour without a checkpoint in 4 h: (e^2 - 1) / 2; with one every hour: (e^0.5 - 1) / 0.5
    assert factor_of(NONE, 4) == pytest.approx((exp(2) - 1) / 2)
    assert factor_of(replace(NONE, checkpoint_hours=1), 4) == pytest.approx((exp(0.5) - 1) / 0.5)
    assert factor_of(replace(NONE, checkpoint_hours=9), 4) == pytest.approx((exp(2) - 1) / 2)
    assert factor_of(replace(NONE, interruptions_per_hour=0), 4) == 1
    assert factor_of(NONE, 0) == 1


def test_each_interruption_waits_for_capacity_and_starts_again() -> None:
    # half an hour to load and compile again: e^0.25 x (e^0.5 - 1) / 0.5 = 1.66595; 0.5 x 4 x that = 3.33190 times 60 s
    delay = expect_delay(replace(NONE, checkpoint_hours=1), 4 * 3600, Restart(waiting=60, training=1800))
    assert delay is not None
    assert delay.factor == pytest.approx(1.66595, rel=1e-5)
    assert delay.interruptions == pytest.approx(3.33190, rel=1e-5)
    assert delay.waiting_seconds == pytest.approx(199.9139, rel=1e-5)


@pytest.mark.parametrize(
    ("hours", "restart_hours", "checkpoint_hours"),
    [(20.1, 0, None), (1e6, 0, None), (4, 20, None), (15, 5.1, None), (1e6, 15, 5.1), (1e6, 2000, 2000)],
)
def test_a_run_that_hardly_ever_ends_has_no_expected_time(
    hours: float, restart_hours: float, checkpoint_hours: float | None
) -> None:
    """More than 10 interruptions, so 20 h at 0.5 an hour, from a start to the next checkpoint."""
    terms = replace(NONE, checkpoint_hours=checkpoint_hours)
    assert expect_delay(terms, hours * 3600, Restart(waiting=60, training=restart_hours * 3600)) is None


def test_frequent_checkpoints_give_a_long_run_an_expected_time() -> None:
    assert factor_of(replace(NONE, checkpoint_hours=0.1), 1e6) == pytest.approx((exp(0.05) - 1) / 0.05)
    assert factor_of(NONE, 19.9) == pytest.approx((exp(9.95) - 1) / 9.95)


def test_interruptions_every_minute_of_a_long_run_leave_it_without_a_projection() -> None:
    """700 interruptions a try to compile, and 10^9 in the work: more than a float can hold."""
    result = completed_result(make_cell(), 1)
    slow = replace(result, examples=10**12, phases_seconds={**result.phases_seconds, "compile": 42_000.0})
    assert with_interruptions(slow, replace(NONE, interruptions_per_hour=60), None) is None


def test_projection_without_interruptions_is_unchanged() -> None:
    """The start of the job was not reported."""
    result = replace(completed_result(make_cell(), 1), attempts=(make_attempt(phase_seconds={"training": 130.0}),))
    same = with_interruptions(result, replace(NONE, interruptions_per_hour=0), None)
    assert same is not None
    assert project_run(same) == project_run(result)
