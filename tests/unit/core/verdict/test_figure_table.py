"""The values of a run by which cells are compared, each by hand."""

from dataclasses import replace
from decimal import Decimal

import pytest

from tests.unit.run_samples import PRICE, completed_result, failed_result, make_cell, make_suite
from tests.unit.step_log_samples import START
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.run.record import QualityTarget
from traindyno.core.step_log.line import evaluation_line
from traindyno.core.suite.choices import Quality
from traindyno.core.verdict.figure_table import values_of
from traindyno.figures.table import FigureColumn

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
BY_HAND = {
    FigureColumn.SAMPLES_PER_SECOND: 16.0,
    FigureColumn.TOKENS_PER_SECOND: 160.0,
    FigureColumn.STEPS_PER_SECOND: 2.0,
    # 60 + 20 + 10 + 60 + 20 s are paid once, of which SageMaker bills 140 - 30 s less the steady
    # ones
    FigureColumn.SECONDS: 170.0 + 4_999.5,
    FigureColumn.BILLABLE_SECONDS: 110.0 + 4_999.5,
    FigureColumn.USD: (110.0 + 4_999.5) / 100,
    FigureColumn.INSTANCE_HOURS: (110.0 + 4_999.5) / 3600,
    # 80 s before training and 50 s of the log; 20 s of downloading are billed too
    FigureColumn.SECONDS_TO_TARGET: 130.0,
    FigureColumn.USD_TO_TARGET: 0.70,
}


def test_each_value_by_hand() -> None:
    assert values_of(RESULT, TARGET) == pytest.approx(BY_HAND)
    assert {*BY_HAND} == {*FigureColumn} - {FigureColumn.VALUE}
    assert RESULT.last_value(Quality.ACCURACY) == 0.92


def test_a_run_without_a_measurement_has_no_values() -> None:
    assert values_of(FAILED, TARGET) == {}
    assert FAILED.last_value(Quality.ACCURACY) is None


def test_an_unknown_price_leaves_time_known() -> None:
    unpriced = replace(RESULT, price=replace(PRICE, usd_per_instance_hour=None))
    without = {FigureColumn.USD, FigureColumn.USD_TO_TARGET}
    assert values_of(unpriced, TARGET) == pytest.approx(
        {column: value for column, value in BY_HAND.items() if column not in without}
    )
    assert PRICE.usd_per_instance_hour == Decimal(36)


def test_a_target_reached_by_no_evaluation_has_no_time() -> None:
    missed = QualityTarget(quality=Quality.ACCURACY, value=0.95)
    assert {*BY_HAND} - {*values_of(RESULT, missed)} == {
        FigureColumn.SECONDS_TO_TARGET,
        FigureColumn.USD_TO_TARGET,
    }
    # an evaluation without an accuracy says nothing of it
    other = completed_result(make_cell(), 1, after=[evaluation_line(START + 30, 20, {"loss": 2.0})])
    assert other.last_value(Quality.ACCURACY) is None
