"""What an execution has paid: of runs with a result, of runs without one, and of jobs that still
run.
"""

import io
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.cli.test_finish import ENDED
from tests.unit.core.jobs.written_jobs import written_job
from tests.unit.lab_in_memory import EXECUTION, PRICE, MemoryExecutions, MemoryLab, make_lab
from tests.unit.run_samples import PRICE as PAID
from tests.unit.run_samples import completed_result, make_cell, result_from
from tests.unit.serving_in_memory import SETTINGS
from tests.unit.store.samples import ROW
from traindyno.api.lab_target import LabTarget
from traindyno.aws.deployment import Deployment
from traindyno.aws.executions import ExecutionUnknown
from traindyno.cli.display.receipt_table import print_receipt, summary
from traindyno.cli.inputs.execution_receipt import ExecutionReceipt, load_receipt, read_receipt
from traindyno.cli.output import Terminal
from traindyno.core.costs.receipt import exact_phase_usd, write_receipt
from traindyno.core.jobs.attempt import Attempt, RunShare
from traindyno.core.jobs.job import Job
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import PaidPrice, run_result_document
from traindyno.core.s3_keys import checkpoints_prefix, result_key
from traindyno.core.suite.suite import Run
from traindyno.core.suite.suite_file import read_stored_suite
from traindyno.features import FEATURES

JOB_ID = "j0123abcd-1"


def attempt_of(run: Run, number: int = 1, **changes: Any) -> Attempt:
    return Attempt(number=number, job_name=f"{run.run_id}-a{number}", submitted_at=0.0, **changes)


def note(lab: MemoryLab, run: Run, number: int, end: Attempt | None) -> None:
    """Leave what SubmitRun and FinishRun leave: the job in the run's row, and the attempt's own
    row.
    """
    job_name = f"{run.run_id}-a{number}"
    row = replace(ROW, job_name=job_name, owner=run, number=number, submitted_at=0.0, end=end)
    lab.spending.reserve(
        row, cap_usd=Decimal(1), also=[lab.runs.noting(EXECUTION, run.run_id, job_name)]
    )


def record(lab: MemoryLab, run: Run, *attempts: Attempt) -> None:
    result = result_from(
        run=run,
        suite=read_stored_suite(lab.bucket.read_json(f"suites/{EXECUTION}/suite.json")),
        attempts=attempts,
        price=PaidPrice(usd_per_instance_hour=PRICE.usd_per_hour),
    )
    lab.bucket.write_json(result_key(EXECUTION, run.run_id), run_result_document(result))


def load(lab: MemoryLab, status: str = "RUNNING") -> ExecutionReceipt:
    return load_receipt(replace(ENDED, status=status), services=lab)


def test_a_result_is_paid_by_its_attempts() -> None:
    lab, (run, *_) = make_lab()
    end = attempt_of(run, outcome=Outcome.COMPLETED, billable_seconds=300.0)
    note(lab, run, 1, end)
    record(lab, run, end)
    loaded = load(lab, "SUCCEEDED")
    # 300 s at $1.20/h = $0.10
    assert (loaded.is_final, loaded.receipt.total_usd) == (True, Decimal("0.10"))
    assert [line.outcome for line in loaded.receipt.lines] == ["completed"]


def test_attempts_of_a_run_without_a_result_are_paid_too() -> None:
    lab, (run, *_) = make_lab()
    note(lab, run, 1, attempt_of(run, error="CapacityUnavailable", billable_seconds=0.0))
    note(lab, run, 2, attempt_of(run, 2, outcome=Outcome.STOPPED_BY_USER, billable_seconds=600.0))
    loaded = load(lab, "ABORTED")
    assert [line.outcome for line in loaded.receipt.lines] == [
        "CapacityUnavailable",
        "stopped_by_user",
    ]
    # 600 s at $1.20/h
    assert (loaded.is_final, loaded.receipt.total_usd) == (True, Decimal("0.20"))


def test_a_job_in_flight_keeps_the_receipt_open() -> None:
    lab, (first, second, *_) = make_lab()
    end = attempt_of(first, outcome=Outcome.COMPLETED, billable_seconds=300.0)
    note(lab, first, 1, end)
    record(lab, first, end)
    note(lab, second, 1, None)
    loaded = load(lab)
    assert loaded.running_jobs == (f"{second.run_id}-a1",)
    assert (loaded.is_final, loaded.receipt.total_usd, loaded.receipt.known_usd) == (
        False,
        None,
        Decimal("0.10"),
    )
    assert [line.outcome for line in loaded.receipt.lines] == ["completed", "running"]


def test_a_job_outliving_its_execution_keeps_the_receipt_open() -> None:
    lab, (run, *_) = make_lab()
    note(lab, run, 1, None)
    assert not load(lab, "ABORTED").is_final


def test_a_receipt_with_possibly_missing_jobs_is_not_final_and_says_why() -> None:
    """MiniStack was killed: what it had not saved is in no row."""
    lab, (run, *_) = make_lab()
    note(lab, run, 1, attempt_of(run, ended_at=400.0, billable_seconds=300.0))
    ended = replace(ENDED, execution_id=EXECUTION, status="FAILED", error="States.ServiceRestart")
    loaded = load_receipt(ended, services=lab.services)
    assert not loaded.is_final
    (line,) = summary(loaded)
    assert line.endswith(
        "so far, not final: MiniStack ended while it ran, and jobs that it had not saved are "
        "missing"
    )


def test_a_run_recorded_before_its_job_had_ended_is_paid_as_the_job_ended() -> None:
    lab, (run, *_) = make_lab()
    record(lab, run, attempt_of(run))
    note(
        lab,
        run,
        1,
        attempt_of(run, outcome=Outcome.TIMED_OUT, billable_seconds=900.0, ended_at=1.0),
    )
    loaded = load(lab, "SUCCEEDED")
    # 900 s at $1.20/h
    assert (loaded.receipt.total_usd, loaded.receipt.lines[0].outcome) == (
        Decimal("0.30"),
        "timed_out",
    )


def test_before_any_job_nothing_was_paid() -> None:
    lab, _ = make_lab()
    loaded = load(lab, "FAILED")
    assert (loaded.receipt.lines, loaded.receipt.total_usd, loaded.is_final) == (
        (),
        Decimal("0.00"),
        True,
    )


def test_an_execution_forgotten_by_step_functions_still_has_its_receipt() -> None:
    lab, runs = make_lab()
    note(lab, runs[0], 1, attempt_of(runs[0], billable_seconds=300))
    loaded = read_receipt(target_of(lab), EXECUTION)
    assert (loaded.status, loaded.is_final, len(loaded.receipt.lines)) == ("UNKNOWN", True, 1)
    with pytest.raises(ExecutionUnknown):
        read_receipt(target_of(lab), "never-started")


def target_of(lab: MemoryLab) -> LabTarget:
    deployment = Deployment(
        lab="traindyno",
        state_machine_arn="suites",
        bucket="results",
        table="rows",
        training_role_arn="role",
        topic_arn="topic",
        source_s3_uri="s3://results/code",
        serving=SETTINGS,
    )
    return LabTarget(
        is_local=True,
        deployment=deployment,
        executions=MemoryExecutions(),
        services=lab,
        features=FEATURES,
    )


def shared_lab(*, ended: int, end: Attempt | None) -> tuple[MemoryLab, list[Run]]:
    """A shared job of three runs, of which the first ``ended`` ones took 100 s each; then the next
    one began.
    """
    lab, runs = make_lab()
    carried = tuple(replace(run, job_id=JOB_ID) for run in runs[:3])
    name = f"{JOB_ID}-a1"
    owner = Job(execution_id=EXECUTION, job_id=JOB_ID, runs=carried)
    row = replace(ROW, job_name=name, owner=owner, is_last=True, submitted_at=0.0, end=end)
    lab.spending.reserve(
        row, cap_usd=Decimal(1), also=[lab.shared_jobs.noting(EXECUTION, JOB_ID, name)]
    )
    written = written_job(name)
    for place, run in enumerate(carried, start=1):
        if place <= ended:
            written.carry(run.run_id, 100)
        elif place == ended + 1:
            written.begin(run.run_id)
    for key, contents in written.files.items():
        lab.bucket.write(f"{checkpoints_prefix(EXECUTION, JOB_ID)}{key}", contents, "")
    return lab, list(carried)


def job_end(**changes: Any) -> Attempt:
    return Attempt(
        number=1,
        job_name=f"{JOB_ID}-a1",
        submitted_at=0.0,
        ended_at=400.0,
        phase_seconds={"training": 301.0},
        billable_seconds=301.0,
        **changes,
    )


def test_runs_of_a_shared_job_without_results_pay_its_bill_together() -> None:
    lab, _ = shared_lab(ended=2, end=job_end(outcome=Outcome.STOPPED_BY_USER))
    loaded = load(lab, "ABORTED")
    # 301 s at $1.20/h = $0.10033
    assert (loaded.receipt.total_usd, loaded.receipt.job_count, len(loaded.receipt.lines)) == (
        Decimal("0.10"),
        1,
        3,
    )
    assert sum(line.billable_seconds or 0 for line in loaded.receipt.lines) == 301
    assert [line.place_text for line in loaded.receipt.lines] == [
        "run 1 of 3",
        "run 2 of 3",
        "run 3 of 3",
    ]
    assert [line.outcome for line in loaded.receipt.lines] == [
        "completed",
        "completed",
        "stopped_by_user",
    ]
    text = " ".join(summary(loaded))
    assert "for 1 training job" in text
    assert loaded.is_final


def test_a_shared_job_in_flight_is_one_running_job() -> None:
    for ended in (0, 2, 3):
        lab, _ = shared_lab(ended=ended, end=None)
        loaded = load(lab)
        assert loaded.running_jobs == (f"{JOB_ID}-a1",)
        assert (loaded.is_final, loaded.receipt.total_usd) == (False, None)


def test_results_recorded_before_their_shared_job_had_ended_are_paid_as_it_ended() -> None:
    lab, carried = shared_lab(ended=3, end=job_end(outcome=Outcome.STOPPED_BY_USER))
    share = RunShare(own_seconds=100, start_seconds=0, end_seconds=0, place=1, runs=3)
    unknown = replace(job_end(), billable_seconds=None, ended_at=None, share=share)
    for run in carried[:2]:
        record(lab, run, unknown)
    receipt = load(lab, "ABORTED").receipt
    assert sum(line.billable_seconds or 0 for line in receipt.lines) == 301
    assert [line.outcome for line in receipt.lines] == ["completed"] * 3


def printed(price: PaidPrice) -> tuple[str, ExecutionReceipt]:
    receipt = write_receipt([completed_result(make_cell(), trial, price=price) for trial in (1, 2)])
    loaded = ExecutionReceipt(
        execution_id="demo",
        status="SUCCEEDED",
        receipt=receipt,
        is_final=True,
        is_simulated=False,
        running_jobs=(),
    )
    sink = io.StringIO()
    print_receipt(Terminal(file=sink, width=160), loaded)
    return sink.getvalue(), loaded


def test_amounts_below_a_dollar_are_shown_to_three_digits() -> None:
    text, loaded = printed(PaidPrice(usd_per_instance_hour=Decimal("0.10")))
    # Two jobs of 170 billed seconds at $0.10 an hour: 2 x 170 / 3,600 x 0.10.
    assert "total $0.00944 for 2 training jobs" in text
    assert "$0.00472" in text
    assert "$0.00\n" not in text
    whole = sum(line.exact_usd for line in loaded.receipt.lines if line.exact_usd is not None)
    assert float(sum(exact_phase_usd(loaded.receipt.lines).values())) == pytest.approx(float(whole))


def test_larger_receipts_stay_in_whole_cents() -> None:
    text, _ = printed(PAID)
    # 2 x 170 / 3,600 x $36.
    assert "total $3.40 for 2 training jobs" in text
