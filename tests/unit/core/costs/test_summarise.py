"""A finished run as a row of a table."""

from decimal import Decimal
from types import SimpleNamespace

import pytest

from tests.unit.run_samples import completed_result, failed_result, make_cell, make_suite
from tests.unit.step_log_samples import START
from traindyno.core.costs.summarise import run_columns, summarise
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.step_log.line import evaluation_line


def test_the_measured_figures_and_those_of_the_whole_work() -> None:
    after = [evaluation_line(START + 30, 20, {"accuracy": 0.9, "loss": 2.0})]
    result = completed_result(
        make_cell(), 2, suite=make_suite(examples=8_008), after=after, loss=lambda _: 3.0
    )
    columns = SimpleNamespace(**run_columns(result))
    assert (columns.cell_id, columns.cell_label, columns.trial, columns.attempts) == (
        "0000000a",
        "ddp",
        2,
        1,
    )
    assert (columns.job_name, columns.instance_count, columns.outcome) == (
        "traindyno-sample-a1",
        1,
        Outcome.COMPLETED,
    )
    assert (columns.samples_per_second, columns.tokens_per_second) == pytest.approx((8.0, 80.0))
    assert columns.mean_step_seconds == pytest.approx(1.0)
    assert (columns.warmup_steps, columns.steady_steps, columns.is_steady) == (1, 60, True)
    # 170 s were billed at a cent each; the job took 60 s to start, and what the phases add up to
    assert (columns.billable_seconds, columns.cost_usd) == (170.0, Decimal("1.70"))
    assert columns.job_seconds == pytest.approx(sum(result.phases_seconds.values()))
    assert (columns.accuracy, columns.evaluation_loss) == (0.9, 2.0)
    assert columns.late_loss == pytest.approx(3.0)
    # 8,000 samples are left after the first step: 1,000 s beside 230 - 60 s
    assert columns.projected_seconds == pytest.approx(1_170)
    assert columns.projected_usd is not None
    assert not columns.is_simulated
    assert summarise(result).steps == 61


def test_a_run_without_a_measurement_has_no_figures() -> None:
    result = failed_result(make_cell(), 1, Outcome.OUT_OF_MEMORY)
    columns = run_columns(result)
    known = {name: value for name, value in columns.items() if value is not None}
    assert (known["outcome"], known["billable_seconds"], known["cost_usd"]) == (
        Outcome.OUT_OF_MEMORY,
        50.0,
        Decimal("0.50"),
    )
    assert {*columns} - {*known} == {
        "samples_per_second",
        "tokens_per_second",
        "mean_step_seconds",
        "steady_steps",
        "warmup_steps",
        "is_steady",
        "accuracy",
        "evaluation_loss",
        "late_loss",
        "projected_seconds",
        "projected_usd",
        "hosts",
        "data_wait_share",
        "overhead_seconds",
        "overhead_billable_seconds",
        "outpaced_by",
        "least_ratio",
    }
    assert summarise(result).steps is None
