"""What was projected stands beside what came of it: in a training's report, and in `traindyno list
--projected`.
"""

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from tests.sentences import Snapshot
from tests.unit.cli.test_execution_receipt import attempt_of, note, target_of
from tests.unit.lab_in_memory import EXECUTION, NOW, MemoryExecutions, MemoryLab, make_lab
from tests.unit.planned_lab import (
    FixedQuotas,
    empty_lab,
    items_of_round,
    judge_execution,
    measure,
    take_in,
)
from tests.unit.run_samples import completed_result, known, make_cell, remeasured
from tests.unit.suites import unprepared_document
from traindyno.cli.lab_choice import LabChoice
from traindyno.cli.main import commands
from traindyno.core.costs.projected_actual import ProjectedActual, job_seconds
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.planning.plan import read_stored_plan, stored_plan
from traindyno.core.s3_keys import plan_key, report_data_key, report_html_key
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.suite_file import suite_document
from traindyno.core.verdict.report_data import parse_report
from traindyno.figures.estimates import Interval
from traindyno.lab.check_quotas import check_quotas
from traindyno.slices.training import client
from traindyno.slices.training.lab import find_training, plan_to_resume
from traindyno.slices.training.plan import (
    Projected,
    Training,
    training_document,
    training_key,
    training_suite,
)
from traindyno.slices.training.report import PART, compared

# A job of one run takes 400 s in a lab in memory, of which 300 s at $1.20 an hour are billed.
PROJECTED = Projected(
    seconds=400.0,
    seconds_interval=Interval(low=300.0, high=450.0, confidence=0.9),
    usd=0.1,
    usd_interval=Interval(low=0.05, high=0.15, confidence=0.9),
)
EARLIER: dict[str, Any] = {"earlier": ("first",), "earlier_seconds": 100.0, "earlier_usd": 0.02}


def trained(**changes: Any) -> MemoryLab:
    lab = empty_lab()
    suite = parse_suite(unprepared_document())
    (cell, _) = suite.cells
    made = training_suite(suite, cell, limits=suite.limits, purchase=suite.purchase)
    take_in(lab, json.loads(json.dumps(suite_document(made))))
    training = Training(
        training_id=EXECUTION, execution_id=EXECUTION, cell=cell, steps=40, projected=PROJECTED
    )
    lab.bucket.write_json(training_key(EXECUTION), training_document(replace(training, **changes)))
    finished(lab)
    return lab


def finished(lab: MemoryLab) -> None:
    check_quotas(EXECUTION, quotas=FixedQuotas(4), bucket=lab.bucket, now=NOW)
    for item in items_of_round(lab):
        measure(lab, item)
    judge_execution(lab)


def test_the_wait_for_the_machine_is_no_time_of_a_job() -> None:
    """Two jobs that did not overlap, of which the first waited 800 s; and one without phases."""
    result = completed_result(make_cell(), 1)
    (attempt,) = result.attempts
    first = replace(
        attempt,
        submitted_at=0.0,
        ended_at=1000.0,
        phase_seconds={"starting": 20.0, "training": 180.0},
    )
    second = replace(
        attempt, submitted_at=1100.0, ended_at=1150.0, phase_seconds={"training": 50.0}
    )
    for attempts, seconds in (
        ((first,), 200.0),
        ((first, first), 200.0),
        ((first, second), 250.0),
        ((replace(first, phase_seconds={}),), 1000.0),
        ((first, replace(second, ended_at=None)), None),
    ):
        assert job_seconds([replace(result, attempts=attempts)]) == seconds


def test_a_training_that_failed_at_its_start_is_not_said_to_have_checkpoints(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = trained()
    training = known(find_training(target_of(lab), EXECUTION))
    failed = replace(
        completed_result(training.cell, 1), outcome=Outcome.USER_CODE_ERROR, message="no rows"
    )
    monkeypatch.setattr(client, "follow_to_end", lambda *_: None)
    monkeypatch.setattr(client, "find_result", lambda *_: failed)
    with pytest.raises(typer.Exit):
        client.show_training(target_of(lab), training, tmp_path)
    said = " ".join(capsys.readouterr().err.split())
    assert "user code error after" in said
    assert said.endswith(
        ": no rows go on from its newest checkpoint, or without one from step 1, with: "
        f"traindyno train --resume {EXECUTION} --local"
    )


def test_the_report_of_a_training_has_its_projection_beside_its_figures() -> None:
    """With the executions that it continues.

    What trained without a projection has no such section.
    """
    lab = trained(**EARLIER)
    time, cost = parse_report(lab.bucket.read_json(report_data_key(EXECUTION))).part(
        PART, ProjectedActual
    )
    assert time.ratio == pytest.approx(1.25)
    assert cost.ratio == pytest.approx(1.2)
    assert [time.side, cost.side] == ["above", "inside"]
    page = lab.bucket.read(report_html_key(EXECUTION)).decode()
    assert '<a href="#training">Projected and actual</a>' in page
    for text in (
        "6 min 40 s (5 min to 7 min 30 s)",
        "8 min 20 s",
        "above",
        "$0.10 ($0.05 to $0.15)",
        "$0.12",
        "inside",
    ):
        assert f">{text}</td>" in page
    other = trained(projected=None)
    assert 'href="#training"' not in other.bucket.read(report_html_key(EXECUTION)).decode()


def test_a_resumed_training_keeps_the_time_of_its_earlier_jobs() -> None:
    """A job that was stopped after 250 s, of which 100 s are billed at $1.20 an hour."""
    lab, runs = make_lab()
    run = runs[0]
    training = Training(
        training_id=EXECUTION, execution_id=EXECUTION, cell=run.cell, steps=40, projected=PROJECTED
    )
    lab.bucket.write_json(training_key(EXECUTION), training_document(replace(training, **EARLIER)))
    note(lab, run, 1, attempt_of(run, ended_at=250.0, billable_seconds=100.0))
    lab.attempts.close(f"{run.run_id}-a1")
    executions = MemoryExecutions()
    executions.start(EXECUTION, {})
    executions.end(EXECUTION, "ABORTED")
    _, following = plan_to_resume(
        replace(target_of(lab), executions=executions), EXECUTION, max_usd=None
    )
    assert following.earlier == ("first", EXECUTION)
    assert following.earlier_seconds == 350.0
    assert following.earlier_usd == pytest.approx(0.02 + 100 * 1.2 / 3600)


def test_known_mfu_is_compared_and_memory_by_its_peak() -> None:
    cell = make_cell()
    before = replace(PROJECTED, peak_memory_bytes=2**30, model_flops_utilization=0.4)
    training = Training(training_id="t", execution_id="t", cell=cell, steps=61, projected=before)
    result = remeasured(completed_result(cell, 1), peak_memory_bytes=2**31)
    assert [quantity.quantity for quantity in compared(training, result)] == [
        "time",
        "cost",
        "memory",
    ]
    *_, memory, mfu = compared(training, remeasured(result, model_flops_utilization=0.3))
    assert memory.texts() == ("memory", "1.00 GiB", "2.00 GiB", "2.00", "no interval")
    assert mfu.texts() == ("MFU", "40.0 %", "30.0 %", "0.750", "no interval")


def listed(lab: MemoryLab, monkeypatch: pytest.MonkeyPatch, *options: str) -> str:
    executions = MemoryExecutions()
    executions.start(EXECUTION, {})
    executions.end(EXECUTION, "SUCCEEDED")
    executions.start("running", {})
    target = replace(target_of(lab), executions=executions)
    monkeypatch.setattr(LabChoice, "find_target", lambda _: target)
    answer = CliRunner().invoke(commands, ["list", "--projected", *options])
    assert answer.exit_code == 0, answer.output
    return answer.output


def test_the_history_has_the_ratios_and_how_often_the_interval_held(
    snapshot: Snapshot,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    document = json.loads(listed(trained(**EARLIER), monkeypatch, "--format", "json"))
    (row,) = document["executions"]
    assert (row["execution_id"], row["of"], row["is_simulated"]) == (EXECUTION, "training", False)
    assert [(quantity["quantity"], quantity["side"]) for quantity in row["compared"]] == [
        ("time", "above"),
        ("cost", "inside"),
    ]
    ratios = document["ratios"]["training"]
    assert [(ratio["count"], ratio["intervals"], ratio["inside"]) for ratio in ratios.values()] == [
        (1, 1, 0),
        (1, 1, 1),
    ]
    assert ratios["time"]["median"] == pytest.approx(1.25)
    table = listed(trained(**EARLIER), monkeypatch)
    snapshot(table)
    assert "$0.12 ÷ $0.10 = 1.20, inside" in table
    last = table.splitlines()[-2]
    assert [cell.strip() for cell in last.split("│")[1:-1]] == [
        "inside the interval",
        "training",
        "0 of 1",
        "1 of 1",
    ]


def test_a_suites_plan_stands_beside_its_runs_with_an_expectation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both runs share a job of 350 s."""
    lab = empty_lab()
    take_in(lab, unprepared_document(measurement={"trials": 1}))
    finished(lab)
    assert json.loads(listed(lab, monkeypatch, "--format", "json"))["executions"] == []
    plan = read_stored_plan(lab.bucket.read_json(plan_key(EXECUTION)))
    expected = replace(plan.expected, usd=Decimal("0.16"), hours=Decimal("0.2"))  # 720 s
    lab.bucket.write_json(plan_key(EXECUTION), stored_plan(replace(plan, expected=expected)))
    (row,) = json.loads(listed(lab, monkeypatch, "--format", "json"))["executions"]
    assert row["of"] == "suite"
    time, cost = row["compared"]
    assert (time["ratio"], time["side"]) == (pytest.approx(350 / 720), None)
    assert (cost["projected"], cost["actual"]) == (0.16, pytest.approx(350 * 1.2 / 3600))
