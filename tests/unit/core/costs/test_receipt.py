"""Receipts add up to the cent: attempts to the total, phases to their attempts."""

import random
from dataclasses import replace
from decimal import Decimal

import pytest

from tests.unit.core.measurement.test_preparation_result import prepared
from tests.unit.run_samples import (
    PRICE,
    completed_result,
    failed_result,
    known,
    make_attempt,
    make_cell,
)
from traindyno.core.costs.quantity_text import to_cents
from traindyno.core.costs.receipt import ReceiptLine, exact_phase_usd, write_receipt
from traindyno.core.errors import CapacityUnavailable
from traindyno.core.jobs.attempt import RunShare
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import PaidPrice, RunResult


def with_attempts(result: RunResult, *billable: float | None, price: str = "36") -> RunResult:
    paid = replace(PRICE, usd_per_instance_hour=Decimal(price))
    attempts = tuple(
        make_attempt(
            number=number, job_name=f"{result.run.run_id}-a{number}", billable_seconds=seconds
        )
        for number, seconds in enumerate(billable, start=1)
    )
    return replace(result, attempts=attempts, price=paid, phases_seconds={})


def phase_usd(line: ReceiptLine) -> dict[str, Decimal | None]:
    return {phase.name: phase.usd for phase in line.phases}


def test_a_line_by_hand() -> None:
    result = with_attempts(completed_result(make_cell(instance_count=2), 1), 140)
    (line,) = write_receipt([result]).lines
    # 140 s x 2 instances at 36 USD/h (0.01 USD/s) = 2.80; billed are 20 + 100 + 20 of the 200 s of
    # phases
    assert line.usd == Decimal("2.80")
    assert phase_usd(line) == {
        "starting": Decimal("0.00"),
        "downloading": Decimal("0.40"),
        "training": Decimal("2.00"),
        "uploading": Decimal("0.40"),
    }


def test_training_is_split_into_the_phases_of_the_step_log() -> None:
    phases = {
        "starting": 60.0,
        "downloading": 20.0,
        "load": 10.0,
        "compile": 25.0,
        "steady": 60.0,
        "other": 5.0,
    }
    result = replace(with_attempts(completed_result(make_cell(), 1), 140), phases_seconds=phases)
    (line,) = write_receipt([result]).lines
    assert {phase.name: phase.seconds for phase in line.phases} == {
        "starting": 60,
        "downloading": 20,
        "load": 10,
        "compile": 25,
        "steady": 60,
        "other": 5,
        "uploading": 20,
    }
    # 1.40 USD over 140 billed seconds
    assert phase_usd(line)["compile"] == Decimal("0.25")
    assert phase_usd(line)["steady"] == Decimal("0.60")


def test_work_of_a_shared_job_for_no_single_run_is_named() -> None:
    share = RunShare(own_seconds=80.0, start_seconds=90.0, end_seconds=15.0, place=1, runs=3)
    attempt = make_attempt(
        billable_seconds=125.0,
        training_seconds=125.0,  # 80 s and a third of 135 s: 90, 15 and 30 s between runs
        phase_seconds={"starting": 60.0, "downloading": 30.0, "training": 345.0},
        share=share,
    )
    result = replace(
        completed_result(make_cell(), 1), attempts=(attempt,), phases_seconds={"steady": 70.0}
    )
    (line,) = write_receipt([result]).lines
    assert {phase.name: phase.seconds for phase in line.phases} == {
        "starting": 20,
        "downloading": 10,
        "steady": 70,
        "job_start": 20,
        "job_end": 5,
        "between_runs": 10,
        "other": 10,
    }


def test_a_log_longer_than_its_job_is_fitted_into_it() -> None:
    phases = {"load": 20.4, "steady": 81.6}
    result = replace(with_attempts(completed_result(make_cell(), 1), 140), phases_seconds=phases)
    (line,) = write_receipt([result]).lines
    seconds = {phase.name: phase.seconds for phase in line.phases}
    # 102 s were logged in 100 s of training: 20.4 x 100 / 102 and 81.6 x 100 / 102
    assert seconds == pytest.approx({**seconds, "load": 20, "steady": 80, "other": 0})
    too_long = replace(result, phases_seconds={"load": 20.4, "steady": 81.7})
    assert "training" in {phase.name for phase in write_receipt([too_long]).lines[0].phases}


def test_only_the_last_attempt_is_measured() -> None:
    result = replace(
        with_attempts(completed_result(make_cell(), 1), 140, 140), phases_seconds={"steady": 90.0}
    )
    first, last = write_receipt([result]).lines
    assert "training" in phase_usd(first)
    assert {"steady", "other"} <= set(phase_usd(last))


@pytest.mark.parametrize("seed", range(50))
def test_lines_and_phases_add_up_to_the_total(seed: int) -> None:
    rng = random.Random(seed)
    results = [
        with_attempts(
            completed_result(make_cell(f"{index:08x}", instance_count=rng.randint(1, 16)), 1),
            *[round(rng.uniform(0, 5000), rng.randint(0, 3)) for _ in range(rng.randint(1, 4))],
            price=f"{rng.uniform(0.01, 120):.6f}",
        )
        for index in range(rng.randint(1, 12))
    ]
    receipt = write_receipt(results)
    exact = sum(
        (line.exact_usd for line in receipt.lines if line.exact_usd is not None), Decimal(0)
    )
    assert receipt.total_usd == to_cents(exact)
    assert sum((line.usd or Decimal(0) for line in receipt.lines), Decimal(0)) == receipt.total_usd
    for line in receipt.lines:
        assert sum((usd or Decimal(0) for usd in phase_usd(line).values()), Decimal(0)) == line.usd
        assert abs(known(line.usd) - known(line.exact_usd)) < Decimal("0.01")
    assert (
        sum((phase.usd or Decimal(0) for phase in receipt.phases), Decimal(0)) == receipt.total_usd
    )


def test_an_attempt_without_instances_costs_nothing_but_is_listed() -> None:
    result = completed_result(make_cell(), 1)
    waited = make_attempt(
        job_name="first",
        outcome=None,
        error=CapacityUnavailable.__name__,
        billable_seconds=0.0,
        phase_seconds={"waiting": 1800.0},
    )
    receipt = write_receipt([replace(result, attempts=(waited, *result.attempts))])
    assert (receipt.lines[0].outcome, receipt.lines[0].usd) == ("CapacityUnavailable", Decimal(0))
    assert phase_usd(receipt.lines[0]) == {"waiting": Decimal(0)}
    assert receipt.total_usd == receipt.lines[1].usd


def test_unknown_is_not_nothing() -> None:
    known, unknown = (with_attempts(completed_result(make_cell(), trial), 100) for trial in (1, 2))
    unpriced = replace(unknown, price=PaidPrice(usd_per_instance_hour=None))
    receipt = write_receipt([known, unpriced])
    assert (receipt.known_usd, receipt.total_usd) == (Decimal("1.00"), None)
    assert receipt.lines[1].usd is None
    assert write_receipt([with_attempts(known, None)]).total_usd is None


def test_failed_runs_are_paid_for_too() -> None:
    receipt = write_receipt([failed_result(make_cell(), 1, Outcome.OUT_OF_MEMORY)])
    # 50 s at 0.01 USD/s
    assert (receipt.lines[0].outcome, receipt.total_usd) == ("out_of_memory", Decimal("0.50"))


def test_nothing_run_costs_nothing() -> None:
    receipt = write_receipt([])
    assert (receipt.lines, receipt.total_usd) == ((), Decimal(0))


def test_a_phase_of_several_lines_adds_up() -> None:
    result = with_attempts(completed_result(make_cell(), 1), 140)
    one = write_receipt([result])
    receipt = write_receipt([result, replace(result, run=replace(result.run, trial=2))])
    seconds = {phase.name: phase.seconds for line in one.lines for phase in line.phases}
    assert seconds["training"] > 0
    assert {phase.name: phase.seconds for phase in receipt.phases} == {
        name: 2 * duration for name, duration in seconds.items()
    }


def test_a_preparation_is_a_line_of_its_own_for_one_instance() -> None:
    attempt = make_attempt(
        billable_seconds=140.0, phase_seconds={"downloading": 20.0, "training": 120.0}
    )
    phases = {"job_start": 12.0, "tokenise": 90.0}
    result = replace(prepared(140.0), attempts=(attempt,), phases_seconds=phases)
    (line,) = write_receipt([result]).lines
    assert (line.instance, line.instance_count, line.usd) == ("ml.m5.xlarge", 1, Decimal("1.40"))
    # the log's 90 s of the 120 s of training
    seconds = {phase.name: phase.seconds for phase in line.phases}
    assert seconds == {"downloading": 20.0, "tokenise": 90.0, "job_start": 12.0, "other": 18.0}


def test_a_running_job_and_one_without_an_outcome_say_so() -> None:
    result = with_attempts(completed_result(make_cell(), 1), 140, 10)
    lost = replace(result.attempts[1], outcome=None, error=None)
    running = result.attempts[0].job_name
    receipt = write_receipt(
        [replace(result, attempts=(result.attempts[0], lost))], running_jobs=[running]
    )
    assert [line.outcome for line in receipt.lines] == ["running", "unknown"]


def test_phases_of_small_receipts_are_costed_without_rounding() -> None:
    result = with_attempts(completed_result(make_cell(), 1), 140, None, price="0.36")
    lines = write_receipt([result]).lines
    # $0.014 over 140 billed seconds of phases: 20, 100 and 20; the attempt without a bill adds
    # nothing
    usd_by_phase = exact_phase_usd(lines)
    assert {name: float(usd) for name, usd in usd_by_phase.items()} == pytest.approx(
        {"downloading": 0.002, "training": 0.010, "uploading": 0.002}
    )


def test_a_phase_of_less_than_a_second_has_its_share() -> None:
    attempt = make_attempt(
        billable_seconds=1.0, phase_seconds={"downloading": 0.25, "training": 0.75}
    )
    result = replace(completed_result(make_cell(), 1), attempts=(attempt,), phases_seconds={})
    paid = replace(result, price=replace(PRICE, usd_per_instance_hour=Decimal("36")))
    usd = {name: float(usd) for name, usd in exact_phase_usd(write_receipt([paid]).lines).items()}
    assert usd == pytest.approx({"downloading": 0.0025, "training": 0.0075})
