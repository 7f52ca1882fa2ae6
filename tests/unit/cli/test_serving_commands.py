"""The commands of serving: what they refuse, what they tell before and after, and what they leave behind."""

import time
from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.cli.test_execution_receipt import target_of
from tests.unit.lab_in_memory import EXECUTION, NOW, make_lab
from tests.unit.serving_in_memory import DEPLOYMENT, NAME, SETTINGS, MemoryServing
from traindyno.aws import clients
from traindyno.cli.commands import serving_commands
from traindyno.cli.display.serving_text import lines_after, lines_before
from traindyno.cli.lab_choice import LabChoice
from traindyno.cli.main import app
from traindyno.core.serving.samples import Latency
from traindyno.lab.serving.deploy_model import deploy_model


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> MemoryServing:
    """A lab in which `deploy` finds the model of ``DEPLOYMENT``."""
    lab, suites = MemoryServing(), make_lab()[0]
    target = target_of(suites)
    monkeypatch.setattr(LabChoice, "find_target", lambda _: target)
    monkeypatch.setattr(serving_commands, "serving_of", lambda _: lab.serving)
    monkeypatch.setattr(serving_commands, "_plan", lambda *_: DEPLOYMENT)
    monkeypatch.setattr(clients, "functions", lambda: None)
    monkeypatch.setattr(time, "time", lambda: NOW)

    def invoke(_functions: Any, name: str, document: Any) -> None:
        assert name == target.deployment.deploy_function
        deploy_model(document, serving=lab.serving, settings=SETTINGS, clock=lambda: NOW)

    monkeypatch.setattr(serving_commands, "invoke_deploy_model", invoke)
    return lab


def call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    with pytest.MonkeyPatch.context() as patched, pytest.raises(SystemExit) as ended:
        patched.setattr("sys.argv", ["traindyno", *words])
        app()
    found = capsys.readouterr()
    return int(str(ended.value.code or 0)), found.out + found.err


def test_a_model_is_deployed_checked_listed_and_undeployed(
    lab: MemoryServing, capsys: pytest.CaptureFixture[str]
) -> None:
    status, text = call(capsys, "deploy", EXECUTION)
    assert status == 0
    assert "2 answers agree with the training job's own" in text
    assert f"delete it with: traindyno undeploy {NAME}" in text
    assert NAME in call(capsys, "endpoints")[1]
    assert call(capsys, "undeploy", NAME) == (0, f"{NAME} is deleted\nit cost $0.00 at most\n")
    assert call(capsys, "undeploy", NAME)[0] == 1
    lab.sagemaker.add("traindyno--mine")
    assert "lacks the tag of lab traindyno" in call(capsys, "undeploy", "traindyno--mine")[1]
    assert set(lab.sagemaker.endpoints) == {"traindyno--mine"}


def test_what_fails_or_differs_is_deleted_and_told_with_its_cost(
    lab: MemoryServing, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.sagemaker.wrong = {"good"}
    status, text = call(capsys, "deploy", EXECUTION)
    assert (status, lab.sagemaker.endpoints) == (1, {})
    assert "was not deployed (AnswersDiffer)" in text
    assert "it cost $0.00 at most" in text
    lines = ["loading the model", "RuntimeError: no weights"]
    tail = SimpleNamespace(read_group=lambda _: lines)
    monkeypatch.setattr(serving_commands, "LogTail", lambda _: tail)
    monkeypatch.setattr(clients, "logs", lambda: None)
    lab.sagemaker.first_status = "Failed"
    _, text = call(capsys, "deploy", EXECUTION)
    assert "gave no reason\nloading the model\nRuntimeError: no weights" in text
    lab.sagemaker.first_status = "Creating"
    lab.deploy()
    status, text = call(capsys, "undeploy", NAME)
    assert status == 1
    assert "is Creating, and SageMaker deletes no endpoint before that has ended" in text


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--instance", "ml.c5.xlrge"), "an instance type such as ml.c5.xlarge"),
        (("--instance", "ml.inf2.xlarge"), "has no container for Trainium and Inferentia"),
        (("--instance", "local.cpu"), "add --local"),
    ],
)
def test_options_that_can_not_be_are_refused(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str
) -> None:
    status, text = call(capsys, "deploy", EXECUTION, *words)
    assert status == 2
    assert says in " ".join(word for word in text.split() if word != "│")


def test_the_cost_is_told_before_and_after() -> None:
    lines = list(lines_before(replace(DEPLOYMENT, max_usd=Decimal("0.30"), hours=None)))
    assert lines[1] == "on ml.c5.xlarge: $0.20 per hour, $4.90 per day (AWS Price List, 2026-11-21)"
    assert lines[2].endswith("it costs $0.30 at most (--max-usd $0.30)")
    kept = list(lines_before(replace(DEPLOYMENT, hours=None)))
    assert kept[2] == "it is kept, and billed, until traindyno undeploy: $146.88 in 30 days"
    after = list(lines_after(DEPLOYMENT, 8, Latency.of([0.018] * 100)))
    assert "p50 18.0 ms, p90 18.0 ms, p99 18.0 ms" in after[2]
    # 0.018 s × 1,000,000 = 5 h of $0.204
    assert after[3] == "cost: $0.20 per hour, $1.02 per million requests with one request at a time"
