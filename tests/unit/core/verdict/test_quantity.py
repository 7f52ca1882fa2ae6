"""What is compared of a run, each quantity by hand."""

from dataclasses import replace
from decimal import Decimal
from functools import partial

import pytest

from tests.unit.run_samples import PRICE, completed_result, failed_result, make_cell, make_suite
from tests.unit.step_log_samples import START
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.run.record import QualityTarget
from traindyno.core.step_log.line import evaluation_line
from traindyno.core.suite.choices import Quality
from traindyno.core.verdict.quantity import (
    Quantity,
    ToTarget,
    last_value,
    projected_billable_seconds,
    projected_instance_hours,
    projected_seconds,
    projected_usd,
    samples_per_second,
    steps_per_second,
    tokens_per_second,
    training_seconds,
)

TARGET = QualityTarget(quality=Quality.ACCURACY, value=0.9)
AFTER = [
    evaluation_line(START + 30, 20, {"accuracy": 0.85}),
    evaluation_line(START + 50, 40, {"accuracy": 0.92}),
]
# 60 s to start, 20 s to download, then 10 s and 60 steps of 0.5 s with 8 samples and 80 tokens
# each, and 60 s besides: 16 samples per second; 79,992 samples are left after the first step,
# 4,999.5 s
RESULT = completed_result(
    make_cell(), 1, step_seconds=0.5, suite=make_suite(examples=80_000), after=AFTER
)
FAILED = failed_result(make_cell(), 1, Outcome.TIMED_OUT)
BY_HAND: list[tuple[Quantity, float]] = [
    (samples_per_second, 16.0),
    (tokens_per_second, 160.0),
    (steps_per_second, 2.0),
    (training_seconds, 5_000.0),
    # 60 + 20 + 10 + 60 + 20 s are paid once, of which SageMaker bills 140 - 30 s less the steady
    # ones
    (projected_seconds, 170.0 + 4_999.5),
    (projected_billable_seconds, 110.0 + 4_999.5),
    (projected_usd, (110.0 + 4_999.5) / 100),
    (projected_instance_hours, (110.0 + 4_999.5) / 3600),
    (partial(last_value, quality=Quality.ACCURACY), 0.92),
    # 80 s before training and 50 s of the log; 20 s of downloading are billed too
    (ToTarget(target=TARGET), 130.0),
    (ToTarget(target=TARGET, is_money=True), 0.70),
]


@pytest.mark.parametrize(("quantity", "expected"), BY_HAND)
def test_each_quantity_by_hand(quantity: Quantity, expected: float) -> None:
    assert quantity(RESULT) == pytest.approx(expected)


@pytest.mark.parametrize("quantity", [quantity for quantity, _ in BY_HAND])
def test_a_run_that_measured_nothing_has_no_quantity(quantity: Quantity) -> None:
    assert quantity(FAILED) is None


def test_a_price_that_is_unknown_leaves_time_known() -> None:
    unpriced = replace(RESULT, price=replace(PRICE, usd_per_instance_hour=None))
    assert projected_usd(unpriced) is None
    assert ToTarget(target=TARGET, is_money=True)(unpriced) is None
    assert ToTarget(target=TARGET)(unpriced) == pytest.approx(130.0)
    assert projected_billable_seconds(unpriced) == pytest.approx(110.0 + 4_999.5)
    assert PRICE.usd_per_instance_hour == Decimal(36)


def test_a_target_that_no_evaluation_reached_has_no_time() -> None:
    assert ToTarget(target=QualityTarget(quality=Quality.ACCURACY, value=0.95))(RESULT) is None
    # an evaluation without an accuracy says nothing of it
    other = completed_result(make_cell(), 1, after=[evaluation_line(START + 30, 20, {"loss": 2.0})])
    assert last_value(other, Quality.ACCURACY) is None
