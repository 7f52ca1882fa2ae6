"""`traindyno list`: the runs that an execution made, beside those that its race could have
started.
"""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from tests.unit.lab_in_memory import EXECUTION, MemoryExecutions
from traindyno.aws import clients
from traindyno.aws.training_jobs import TrainingJobs
from traindyno.cli.commands.execution_commands import short_finding
from traindyno.cli.lab_choice import LabChoice
from traindyno.cli.main import commands
from traindyno.store.executions import Judgement


@pytest.mark.parametrize(
    ("ended", "shown"),
    [(None, "18"), (4, "4 of 18"), (18, "18")],
    ids=["no verdict yet", "a race", "all"],
)
def test_the_runs_of_an_execution_are_its_own(
    ended: int | None, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    judgement = Judgement(
        finding="found", headline="-", recommended=None, is_simulated=False, run_count=ended or 0
    )
    row = SimpleNamespace(run_count=18, judgement=judgement if ended else None)
    executions = MemoryExecutions()
    executions.start(EXECUTION, {})
    job = SimpleNamespace(job_name="second")
    services = SimpleNamespace(
        executions=SimpleNamespace(find=lambda _: row),
        attempts=SimpleNamespace(list_open=lambda _: iter([job])),
    )
    message = "waiting for the machine, behind r-hf, which has it since 20:41 UTC"
    described = {
        "SecondaryStatus": "Starting",
        "SecondaryStatusTransitions": [{"Status": "Starting", "StatusMessage": message}],
    }
    monkeypatch.setattr(
        clients,
        "sagemaker",
        lambda: SimpleNamespace(describe_training_job=lambda **_: described),
    )
    monkeypatch.setattr(
        LabChoice,
        "find_target",
        lambda _: SimpleNamespace(executions=executions, services=services),
    )
    answer = CliRunner().invoke(commands, ["list"])
    assert answer.exit_code == 0, answer.output
    assert f"\u2502 {shown} " in answer.output
    assert ("behind r-hf" in answer.output) == (ended is None)
    (listed,) = json.loads(CliRunner().invoke(commands, ["list", "--format", "json"]).output)
    assert listed["waits_for"] == message
    assert (listed["run_count"], listed["ended_run_count"]) == (18, ended)
    monkeypatch.setattr(TrainingJobs, "describe", lambda *_: None)
    (listed,) = json.loads(CliRunner().invoke(commands, ["list", "--format", "json"]).output)
    assert listed["waits_for"] is None, "its job is not created yet"


@pytest.mark.parametrize("status", ["FAILED", "ABORTED", "TIMED_OUT"])
def test_an_execution_without_a_verdict_says_why_it_ended(
    status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list of Step Functions has no reasons."""
    executions = MemoryExecutions()
    executions.start(EXECUTION, {})
    executions.end(EXECUTION, status, error="SuiteRefused", cause="ml.p5: its quota is 0")
    latest = list(executions.list_latest(1))
    monkeypatch.setattr(
        executions, "list_latest", lambda _: [replace(latest[0], error=None, cause=None)]
    )
    services = SimpleNamespace(executions=SimpleNamespace(find=lambda _: None))
    monkeypatch.setattr(
        LabChoice,
        "find_target",
        lambda _: SimpleNamespace(executions=executions, services=services),
    )
    answer = CliRunner().invoke(commands, ["list"])
    assert answer.exit_code == 0, answer.output
    assert "SuiteRefused: ml.p5: its quota is 0" in " ".join(answer.output.split())


@pytest.mark.parametrize(
    ("headline", "short"),
    [
        ("Use fsdp · batch 8: it is cheapest.", "Use fsdp · batch 8"),
        (
            "Use eager; 9 other cells are within 2 % (wrong in at most 5 % of suites).",
            "Use eager",
        ),
        (
            "4 × local.cpu and 3 other cells can't be told apart yet: 172 trials of each would "
            "decide. The trials ran for 9 s.",
            "4 × local.cpu and 3 other cells can't be told apart yet",
        ),
        ("No recommendation: the batch varies.", "No recommendation"),
        ("ddp was fastest, but cells with one trial can't be compared.", None),
        ("Use lr 2.5e-4 · s3://b/c: it is fastest.", "Use lr 2.5e-4 · s3://b/c"),
        ("", ""),
    ],
)
def test_the_outcome_of_a_listed_execution_is_the_finding_without_its_reasons(
    headline: str, short: str | None
) -> None:
    assert short_finding(headline) == (headline.rstrip(".") if short is None else short)
