"""The handlers: what they read from the environment and the event, and what they hand on."""

import json
import logging
import time
from typing import Any

import pytest

from lambdas.finish_run import handler as finish_run
from lambdas.plan_suite import handler as plan_suite
from lambdas.reconcile_runs import handler as reconcile_runs
from lambdas.record_run import handler as record_run
from lambdas.submit_run import handler as submit_run
from tests.unit.lab_in_memory import (
    EXECUTION,
    NOW,
    SETTINGS,
    MemoryExecutions,
    MemoryLab,
    Unhurried,
    make_lab,
    set_environment,
)
from tests.unit.serving_in_memory import MemoryServing
from traindyno.aws import clients
from traindyno.core.jobs.job import owner_document
from traindyno.lab.environment import BucketEnvironment


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> MemoryLab:
    lab, _ = make_lab()
    set_environment(monkeypatch)

    def connect(environment: BucketEnvironment) -> MemoryLab:
        assert (environment.table, environment.bucket) == ("rows", "results")
        return lab

    for module in (submit_run, finish_run, record_run, reconcile_runs, plan_suite):
        monkeypatch.setattr(module, "connect", connect)
    monkeypatch.setattr(reconcile_runs, "open_serving", lambda _: MemoryServing().serving)
    monkeypatch.setattr(time, "time", lambda: NOW)
    return lab


def run_event() -> dict[str, Any]:
    return owner_document(make_lab()[1][0])["run"]  # type: ignore[no-any-return]


def test_submit_run_starts_the_suites_image_with_its_source_and_the_labs_role(
    lab: MemoryLab,
) -> None:
    lab.plan(images={"gpu": "111111111111.dkr.ecr.us-east-1.amazonaws.com/efa:1"})
    submit_run.handle({"item": {"run": run_event(), "timeout_seconds": 60}, "token": "t"}, None)
    (request,) = lab.jobs.requests
    assert request["RoleArn"] == SETTINGS.role_arn
    assert request["AlgorithmSpecification"]["TrainingImage"].endswith("/efa:1")
    assert "s3://results/code/" in request["HyperParameters"]["sagemaker_submit_directory"]
    assert request["TrainingJobName"].startswith("traindyno--")


def test_an_event_and_the_state_after_it_make_one_result(lab: MemoryLab) -> None:
    run = run_event()
    event = {"item": {"run": run}, "token": "t"}
    submit_run.handle(event, None)
    (name,) = lab.jobs.jobs
    lab.jobs.end(name, "Failed", reason="AlgorithmError: exit code 1")
    finish_run.handle({"detail": {"TrainingJobName": name}}, None)
    ((_, kind, output),) = lab.answers.given
    assert kind == "success"
    assert record_run.handle({"run": run, "end": json.loads(output)}, Unhurried()) == {}
    (run_id,) = lab.run_rows
    assert lab.summary(run_id).outcome == "user_code_error"


def test_a_run_of_a_shared_job_is_recorded_with_the_end_of_the_job(lab: MemoryLab) -> None:
    """One field holds the job's end, or what the state machine caught."""
    ends = (
        {"Error": "States.Timeout", "Cause": ""},
        {"outcome": "cost_stopped", "message": "the cap has no room"},
    )
    for number, end in enumerate(ends):
        job_id = f"j0123abcd-{number}"
        runs = [
            {**run_event(), "run_id": f"0000000{number}-t{trial}", "job_id": job_id}
            for trial in (1, 2)
        ]
        job = {"execution_id": EXECUTION, "job_id": job_id, "runs": runs}
        assert record_run.handle({"job": job, "timeout_seconds": 60, "end": end}, Unhurried()) == {}
    outcomes = [
        lab.summary(f"0000000{number}-t{trial}").outcome for number in (0, 1) for trial in (1, 2)
    ]
    assert outcomes == ["timed_out"] * 2 + ["cost_stopped"] * 2


def test_plan_suite_answers_with_a_refusal_instead_of_raising_it(
    lab: MemoryLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("pricing", "s3", "table"):
        monkeypatch.setattr(clients, name, lambda *_: None)
    answer = plan_suite.handle({"execution_id": "e", "suite": {"name": "x"}}, None)
    assert answer["refused"]["error"] == "SuiteInvalid"
    assert "workload" in answer["refused"]["cause"]


@pytest.mark.parametrize(
    ("event", "overdue"), [({}, 0), ({"quiet_seconds": 5}, 1)], ids=["scheduled", "by hand"]
)
def test_the_sweep_logs_its_counts(
    lab: MemoryLab,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    event: dict[str, Any],
    overdue: int,
) -> None:
    submit_run.handle({"item": {"run": run_event()}, "token": "t"}, None)
    (name,) = lab.jobs.jobs
    lab.jobs.end(name, "Failed", reason="AlgorithmError: exit code 1")
    monkeypatch.setattr(time, "time", lambda: NOW + 10)
    monkeypatch.setattr(clients, "stepfunctions", lambda: None)
    executions = MemoryExecutions()
    executions.start(EXECUTION, {})
    monkeypatch.setattr(reconcile_runs, "Executions", lambda *_: executions)
    with caplog.at_level(logging.INFO):
        reconcile_runs.handle(event, Unhurried())
    (line,) = [record for record in caplog.records if record.message == "ReconcileRuns"]
    assert vars(line)["overdue"] == overdue
