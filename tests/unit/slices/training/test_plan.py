"""The suite of a training is one that the lab accepts, of the same cell, and its jobs are within
its amount.
"""

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.properties import examples
from tests.sentences import Snapshot
from tests.unit.suites import script_document, small_document
from tests.unit.verdict_samples import make_row
from traindyno.api.run_position import log_entries
from traindyno.core.costs.prediction import Prediction
from traindyno.core.errors import SuiteInvalid
from traindyno.core.lab_names import EXECUTION_HOURS
from traindyno.core.planning.job_terms import run_terms
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.choices import Jobs, Purchase
from traindyno.core.suite.suite_file import suite_document
from traindyno.figures.estimates import Interval
from traindyno.slices.training.client import start_lines
from traindyno.slices.training.forecast import forecast, read_pace
from traindyno.slices.training.plan import (
    LONGEST_JOB_SECONDS,
    Projected,
    Training,
    parse_training,
    projected_of,
    training_document,
    training_limits,
    training_suite,
)

PROJECTED = Projected(
    seconds=1000.0,
    seconds_interval=Interval(low=900.0, high=1100.0, confidence=0.9),
    usd=2.0,
    usd_interval=Interval(low=1.8, high=2.2, confidence=0.9),
    step_seconds=1.0,
)


@pytest.mark.parametrize(
    "document",
    [
        small_document(),
        small_document(
            include=[{"learning_rate": 1e-4, "lr_schedule": "cosine", "strategy": "fsdp"}],
            search="race",
        ),
        small_document(
            measurement={
                "stop_when": {"relative_half_width": 0.01},
                "max_steps": 900,
                "confirm": {"minutes": 1},
            }
        ),
        script_document(),
    ],
    ids=["grid", "race", "stop_when", "script"],
)
def test_the_suite_of_a_training_is_accepted_and_has_its_cell_alone(
    document: dict[str, Any],
) -> None:
    suite = parse_suite(document)
    for cell in suite.cells:
        limits = training_limits(suite.limits, cell.settings, Decimal("1.2"), PROJECTED, None)
        made = training_suite(
            suite, cell, limits=limits, purchase=Purchase.SPOT, projected=PROJECTED
        )
        read = parse_suite(json.loads(json.dumps(suite_document(made))))
        assert read == made
        (only,) = read.cells
        assert only.cell_id == cell.cell_id
        assert read.measurement.confirm is None
        assert (read.measurement.trials, read.measurement.jobs, read.purchase) == (
            1,
            Jobs.SEPARATE,
            Purchase.SPOT,
        )
        assert read.limits.chain_jobs
        assert read.workload.examples == suite.workload.examples
        training = Training(
            training_id="a", execution_id="a", cell=only, steps=None, projected=PROJECTED
        )
        assert parse_training(json.loads(json.dumps(training_document(training)))) == training


def test_the_training_of_a_script_leaves_out_settings_that_it_does_not_see() -> None:
    """Among them the batch that a search found, which is an argument too."""
    suite = parse_suite(script_document(training={"seed": 7}))
    (cell,) = suite.cells
    found = replace(cell, settings=replace(cell.settings, batch_size_per_device=24))
    changes = {"samples": 24}
    made = training_suite(
        suite, found, limits=suite.limits, purchase=suite.purchase, changes=changes
    )
    given = {"instance": "ml.g5.xlarge", "seed": 7, "hyperparameters.samples": 24}
    assert made.training == given
    assert parse_suite(json.loads(json.dumps(suite_document(made)))) == made


def test_a_checkpoint_is_written_every_ten_minutes_and_ten_times_at_least() -> None:
    # 10,000 examples in batches of 1 are 10,000 steps of 1 s: 600 steps are ten minutes, and 1000 a
    # tenth
    suite = parse_suite(small_document())
    (cell, _) = suite.cells
    made = training_suite(
        suite, cell, limits=suite.limits, purchase=suite.purchase, projected=PROJECTED
    )
    assert (made.measurement.max_steps, made.measurement.checkpoint_every_steps) == (10_000, 600)
    unmeasured = training_suite(suite, cell, limits=suite.limits, purchase=suite.purchase)
    assert unmeasured.measurement.checkpoint_every_steps == 1000


@given(
    seconds=st.floats(1, 1e7),
    usd_per_hour=st.decimals("0.01", 100, places=2),
    cap=st.none() | st.integers(1, 10**5),
)
@example(seconds=1e7, usd_per_hour=Decimal(90), cap=1)
@examples(60)
def test_a_job_is_paid_within_the_amount_and_another_one_after_it(
    seconds: float, usd_per_hour: Decimal, cap: int | None
) -> None:
    suite = parse_suite(small_document())
    settings = suite.cells[0].settings
    amount = None if cap is None else Decimal(cap)
    limits = training_limits(
        suite.limits, settings, usd_per_hour, Projected(seconds=seconds), amount
    )
    made = parse_suite({**small_document(), "limits": suite_document(suite)["limits"]})
    terms = run_terms(
        settings, training_suite(made, made.cells[0], limits=limits, purchase=made.purchase)
    )
    assert limits.max_job_seconds <= LONGEST_JOB_SECONDS
    assert amount in (None, limits.max_usd)
    if limits.max_job_seconds > 60:
        assert 2 * terms.worst_case_usd(usd_per_hour) <= limits.max_usd + Decimal("0.01")
    assert EXECUTION_HOURS > limits.max_hours >= Decimal(limits.max_job_seconds) / 3600
    assert parse_suite(
        {**small_document(), "limits": suite_document(replace(suite, limits=limits))["limits"]}
    )


@pytest.mark.parametrize(("days", "is_told"), [(26, False), (28, True)])
def test_a_training_outlasting_its_execution_is_told_before_it_starts(
    days: int, is_told: bool
) -> None:
    suite = parse_suite(small_document())
    training = Training(
        training_id="model",
        execution_id="model",
        cell=suite.cells[0],
        steps=None,
        projected=Projected(seconds=days * 86_400.0),
    )
    lines = [*start_lines(suite, training, "")]
    assert any("an execution ends after 27 days" in line for line in lines) == is_told
    limits = {"max_usd": 1, "max_hours": 28 * 24, "max_job_seconds": 60}
    with pytest.raises(SuiteInvalid, match=r"limits.max_hours: got 672, expected .* at most 648"):
        parse_suite(small_document(limits=limits))


@pytest.mark.parametrize(
    ("document", "projected"),
    [
        (small_document(), Projected()),
        (script_document(), Projected(seconds=90.0, usd=0.5)),
        (small_document(), Projected(seconds=90.0, usd=0.5)),
    ],
    ids=["no time", "script", "task"],
)
def test_a_projection_says_what_it_is_of_and_why_it_is_unknown(
    snapshot: Snapshot, document: dict[str, Any], projected: Projected
) -> None:
    suite = parse_suite(document)
    cell = suite.cells[0]
    training = Training(
        training_id="model", execution_id="model", cell=cell, steps=None, projected=projected
    )
    snapshot(next(start_lines(suite, training, "")))


@pytest.mark.parametrize(("amount", "expected"), [(None, Decimal(100)), (Decimal(7), Decimal(7))])
def test_without_a_projection_the_suites_own_limits_count(
    amount: Decimal | None, expected: Decimal
) -> None:
    """A cell that failed or was outpaced may be trained in spite of it."""
    suite = parse_suite(
        small_document(limits={"max_usd": 100, "max_hours": 9, "max_job_seconds": 7200})
    )
    settings = suite.cells[0].settings
    limits = training_limits(suite.limits, settings, Decimal("1.2"), Projected(), amount)
    assert limits == replace(suite.limits, max_usd=expected)


def log_of(begins: list[float]) -> list[str]:
    return [
        json.dumps({"kind": "step", "step": number, "begin": begin})
        for number, begin in enumerate(begins, 50)
    ]


def test_a_training_is_forecast_from_its_last_steps(snapshot: Snapshot) -> None:
    foreign = [
        '{"kind": "step"}',
        '{"kind": "step", "step": "x", "begin": null}',
        "[]",
        '{"kind": "phase", "name": "x"}',
    ]
    pace = read_pace(log_entries("\n".join(["…cut off", *log_of([0.0, 2.0, 4.0, 6.0]), *foreign])))
    assert pace is not None
    assert (pace.step, pace.step_seconds) == (53, 2.0)
    assert read_pace(map(json.loads, log_of([0.0, 1.0]))) is None
    told = forecast(
        pace,
        PROJECTED,
        steps=553,
        elapsed_seconds=200,
        spent_usd=0.9,
        usd_per_second=0.001,
    )
    # 500 steps of 2 s are left, after 200 s; and $0.90 + 1000 s × $0.001
    assert (told.time.actual, told.cost.actual) == (1200.0, 1.9)
    snapshot(told.line())
    inside = forecast(
        pace,
        PROJECTED,
        steps=453,
        elapsed_seconds=200,
        spent_usd=None,
        usd_per_second=0.001,
    )
    assert inside.is_inside
    snapshot(inside.line())
    dear = forecast(
        pace,
        PROJECTED,
        steps=453,
        elapsed_seconds=200,
        spent_usd=1.5,
        usd_per_second=0.001,
    )
    assert not dear.is_inside
    snapshot(dear.line())
    unknown = forecast(
        pace, None, steps=453, elapsed_seconds=200, spent_usd=0.9, usd_per_second=0.001
    )
    snapshot(unknown.line())


@pytest.mark.parametrize(
    "begin", [float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 10**400, -(10**400), 2.5]
)
@pytest.mark.parametrize("step", [3, -1, 10**400, 1e300, float("nan")])
def test_a_forecast_takes_whatever_a_script_logs_and_is_never_negative(
    begin: float, step: float
) -> None:
    """The clock goes back at 2.5 too."""
    odd = {"kind": "step", "step": step, "begin": begin}
    entries = [{"kind": "step", "step": number, "begin": 2.0 * number} for number in range(5)]
    for place in range(6):
        pace = read_pace([*entries[:place], odd, *entries[place:]])
        assert pace is not None
        told = forecast(
            pace,
            PROJECTED,
            steps=2000,
            elapsed_seconds=9,
            spent_usd=None,
            usd_per_second=1.0,
        )
        assert min(told.left_seconds, told.left_usd) >= 0
        assert "-" not in told.line()


def test_the_interval_of_the_cost_has_room_for_the_whole_billed_seconds() -> None:
    usd = Interval(low=0.0005, high=0.02, confidence=0.9)
    prediction = Prediction(
        trials=3, confidence=0.9, seconds=None, usd=usd, interruptions_per_hour=0.0
    )
    row = make_row(prediction=prediction, usd_per_instance_hour=Decimal("3.6"), instance_count=2)
    interval = projected_of(row, (), is_same_purchase=True).usd_interval
    # A second of two instances costs 2 x 3.6 / 3600 = 0.002 USD.
    assert interval is not None
    assert interval.low == 0.0
    assert interval.high == pytest.approx(0.022)
    assert projected_of(row, (), is_same_purchase=False).usd_interval is None
