"""Costs on spot from an assumed discount and interruption rate."""

from dataclasses import replace
from decimal import Decimal

import pytest

from tests.unit.run_samples import PRICE, completed_result, make_attempt, make_cell, make_suite, remeasured
from traindyno.core.costs.spot import SpotAssumption, at_risk_seconds, observe_discounts, spot_cost_text
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.suite import Limits, Measurement
from traindyno.core.suite.workload import FullRun

LIMITS = Limits(max_usd=Decimal(100), max_hours=Decimal(4), max_job_seconds=7200)


def test_the_cost_by_hand() -> None:
    # $100 on demand, 60 % off: $40. A job of 2 h meets 0.1 x 2 = 0.2 interruptions, each repeats half of it: + 10 %
    assumed = SpotAssumption(discount=0.6, interruptions_per_hour=0.1)
    assert assumed.usd(Decimal(100), Decimal(7200)) == Decimal(44)


def test_checkpoints_limit_what_an_interruption_repeats() -> None:
    # At most 1800 s are lost: of 200 steps in 7200 s, those since the last checkpoint of every 50.
    plain = make_suite(measurement=Measurement(max_steps=200), limits=LIMITS)
    saved = replace(plain, measurement=Measurement(max_steps=200, checkpoint_every_steps=50))
    rare = replace(plain, measurement=Measurement(max_steps=200, checkpoint_every_steps=500))
    assert [at_risk_seconds(suite) for suite in (plain, saved, rare)] == [7200, 1800, 7200]
    # the job saves in its midst, since the full run saves
    schedule = FullRun(checkpoint_every_minutes=10)
    assert at_risk_seconds(replace(plain, workload=replace(plain.workload, full_run=schedule))) == 3600


def test_the_text_says_what_is_assumed() -> None:
    assumed = SpotAssumption(discount=0.6, interruptions_per_hour=0.1)
    assert spot_cost_text(Decimal(100), Decimal(7200), assumed) == (
        "$44.00 on spot instead of $100.00 on demand; assumed: a discount of 60 % and 0.1 interruptions per hour of a"
        " job"
    )
    assert spot_cost_text(None, Decimal(7200), assumed).startswith("unknown on spot instead of unknown on demand")


def spot_result(instance: str, *, training: float, billable: float, interruptions: int = 0) -> RunResult:
    result = remeasured(completed_result(make_cell(instance=instance), 1), interruptions=interruptions)
    attempt = make_attempt(training_seconds=training, billable_seconds=billable)
    return replace(result, attempts=(attempt,), price=replace(result.price, purchase="spot"))


def test_spot_terms_are_observed_over_all_spot_jobs_of_an_instance_type() -> None:
    results = [
        spot_result("ml.g5.xlarge", training=3600, billable=1440, interruptions=2),
        spot_result("ml.g5.xlarge", training=3600, billable=720, interruptions=1),
        # an on-demand job says nothing
        replace(spot_result("ml.p4d.24xlarge", training=900, billable=900), price=PRICE),
    ]
    # 2,160 of 7,200 s were billed
    assert observe_discounts(results) == {"ml.g5.xlarge": pytest.approx(0.7)}
