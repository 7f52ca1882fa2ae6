import json
import re
from typing import Any

import pytest

from tests.unit.lab_in_memory import EXECUTION, NOW, SETTINGS, MemoryLab, make_lab, no_sleep
from tests.unit.step_log_samples import log_lines
from traindyno.core.jobs.job import not_started_text
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.s3_keys import result_key, step_log_prefix
from traindyno.core.suite.suite import Run
from traindyno.lab.finish_run import finish_run
from traindyno.lab.record_run import FinalOutcome, record_runs, refused_outcome
from traindyno.lab.submit_run import submit_run


def ended(status: str, **end: Any) -> tuple[MemoryLab, Run, str]:
    lab, (run, *_) = make_lab()
    submit_run(run, "token-1", services=lab.services, settings=SETTINGS, now=NOW, sleep=no_sleep)
    (name,) = lab.jobs.jobs
    lab.jobs.end(name, status, **end)
    finish_run(name, services=lab.services, now=NOW + 500)
    return lab, run, name


def log_steps(lab: MemoryLab, run: Run, job_name: str) -> None:
    lines = log_lines(step_seconds=[0.5] * 40)
    key = f"{step_log_prefix(EXECUTION, run.run_id, job_name)}rank-00000.1790000000000.jsonl"
    lab.objects.contents[key] = "".join(lines).encode()


def result_of(lab: MemoryLab, run: Run) -> dict[str, Any]:
    return dict(json.loads(lab.objects.contents[result_key(EXECUTION, run.run_id)]))


def test_a_completed_run_has_its_measurement_its_cost_and_one_row() -> None:
    lab, run, name = ended("Completed", billable_seconds=300)
    log_steps(lab, run, name)
    record_runs(run, final=None, services=lab.services)
    result = result_of(lab, run)
    row = lab.summary(run.run_id)
    assert result["outcome"] == row.outcome == "completed"
    assert result["measured"]["steady_state"]
    assert row.time.billable_seconds == result["billable_seconds"] == 300
    assert (
        result["price"] | {"usd_per_instance_hour": "1.20", "date": "2026-11-20"} == result["price"]
    )


def test_a_run_is_recorded_once_however_often_it_is_asked_for() -> None:
    lab, run, name = ended("Completed")
    log_steps(lab, run, name)
    record_runs(run, final=None, services=lab.services)
    record_runs(
        run, final=FinalOutcome(outcome=Outcome.INTERNAL_ERROR, message=None), services=lab.services
    )
    assert lab.objects.writes[result_key(EXECUTION, run.run_id)] == 1
    assert result_of(lab, run)["outcome"] == "completed"


def test_a_failed_run_shows_the_end_of_its_log() -> None:
    lab, run, name = ended("Failed", reason="AlgorithmError: ExecuteUserScriptError: exit code 1")
    lab.logs.write(f"{name}/algo-1-1", ["Traceback", "ValueError: no"], 0)
    record_runs(run, final=None, services=lab.services)
    result = result_of(lab, run)
    assert result["outcome"] == "user_code_error"
    assert result["log_tail"] == ["Traceback", "ValueError: no"]


def test_the_log_tells_of_a_kill_behind_a_silent_toolkit() -> None:
    """Under torchrun the toolkit keeps no line before a Python error's name."""
    silent = 'AlgorithmError: ExecuteUserScriptError:\nExitCode 1\nErrorMessage ""\nCommand "x"'
    lines = ["step 7", "traceback : Signal 9 (SIGKILL) received by PID 14115"]
    for reason, outcome in ((silent, "killed"), (silent.replace('""', '"e"'), "user_code_error")):
        lab, run, name = ended("Failed", reason=reason)
        lab.logs.write(f"{name}/algo-1-1", lines, 0)
        record_runs(run, final=None, services=lab.services)
        assert result_of(lab, run)["outcome"] == outcome


def test_a_job_completed_without_a_logged_step_is_no_success() -> None:
    lab, run, _ = ended("Completed")
    record_runs(run, final=None, services=lab.services)
    result = result_of(lab, run)
    assert result["outcome"] == "user_code_error"
    assert "traindyno.callbacks" in result["message"]


def test_a_log_without_the_form_of_a_step_log_is_named() -> None:
    lab, run, name = ended("Completed")
    log_steps(lab, run, name)
    (key,) = [key for key in lab.objects.contents if key.endswith(".jsonl")]
    lab.objects.contents[key] = b'{"kind": "step"}\n{"kind": "end", "time": 1, "steps": 0}\n'
    record_runs(run, final=None, services=lab.services)
    result = result_of(lab, run)
    assert result["outcome"] == "user_code_error"
    assert "rank-00000" in result["message"]


def test_a_run_without_a_started_job_has_the_reason() -> None:
    lab, (run, *_) = make_lab()
    ending = refused_outcome({"outcome": "quota_exceeded", "message": "the limit is 0"})
    record_runs(run, final=ending, services=lab.services)
    result = result_of(lab, run)
    assert (result["outcome"], result["message"], result["attempts"]) == (
        "quota_exceeded",
        "the limit is 0",
        [],
    )


@pytest.mark.parametrize(
    ("has_steps", "said"),
    [
        (False, "run {} was not started: 45 s are left"),
        (True, "cut off, and its job was not started again: 45 s are left"),
    ],
)
def test_a_refused_job_is_not_reported_on_a_run_with_steps(has_steps: bool, said: str) -> None:
    lab, run, name = ended("Failed", reason="CapacityError: none")
    if has_steps:
        log_steps(lab, run, name)
    message = not_started_text(run, "45 s are left")
    final = FinalOutcome(outcome=Outcome.COST_STOPPED, message=message)
    record_runs(run, final=final, services=lab.services)
    assert result_of(lab, run)["message"] == said.format(run.run_id)


def test_a_timed_out_task_has_its_job_stopped() -> None:
    lab, (run, *_) = make_lab()
    submit_run(run, "token-1", services=lab.services, settings=SETTINGS, now=NOW, sleep=no_sleep)
    record_runs(
        run, final=refused_outcome({"Error": "States.Timeout", "Cause": ""}), services=lab.services
    )
    (name,) = lab.jobs.jobs
    assert lab.jobs.stopped == [name]
    assert lab.summary(run.run_id).outcome == "timed_out"


@pytest.mark.parametrize("has_steps", [True, False])
def test_a_job_at_its_limit_says_its_last_step(has_steps: bool) -> None:
    lab, run, name = ended("Stopped", secondary="MaxRuntimeExceeded")
    if has_steps:
        log_steps(lab, run, name)
    record_runs(run, final=None, services=lab.services)
    result = result_of(lab, run)
    assert result["outcome"] == "timed_out"
    stood = (
        "it ended at least step 39, the last one in its log, .+ before the job's end"
        if has_steps
        else "its log has no step"
    )
    assert re.fullmatch(rf"still running after \d+ seconds; {stood}", result["message"])


def test_an_error_beyond_the_state_machines_retries_keeps_its_class() -> None:
    last = {
        "CapacityUnavailable": Outcome.CAPACITY_UNAVAILABLE,
        "SlotUnavailable": Outcome.QUOTA_EXCEEDED,
    }
    for error, outcome in {**last, "KeyError": Outcome.INTERNAL_ERROR}.items():
        expected = FinalOutcome(outcome=outcome, message=f"{error}: x")
        assert refused_outcome({"Error": error, "Cause": "x"}) == expected
    assert refused_outcome({"job_name": "x"}) is None


def test_all_attempts_of_a_run_are_in_its_result() -> None:
    lab, (run, *_) = make_lab()
    for token in ("a", "b"):
        submit_run(run, token, services=lab.services, settings=SETTINGS, now=NOW, sleep=no_sleep)
        name = list(lab.jobs.jobs)[-1]
        lab.jobs.end(
            name, "Failed", reason="CapacityError: none" if token == "a" else "AlgorithmError: x"
        )
        finish_run(name, services=lab.services, now=NOW + 500)
    record_runs(run, final=None, services=lab.services)
    attempts = result_of(lab, run)["attempts"]
    assert [(attempt["number"], attempt["error"], attempt["outcome"]) for attempt in attempts] == [
        (1, "CapacityUnavailable", None),
        (2, None, "user_code_error"),
    ]
