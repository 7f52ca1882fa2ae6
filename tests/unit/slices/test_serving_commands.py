"""The commands of serving: what they create, refuse and tell, and what they leave behind."""

import re
import time
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import pytest

from tests.unit.cli.test_execution_receipt import target_of
from tests.unit.cli.test_text_is_text import call as start
from tests.unit.lab_in_memory import EXECUTION, NOW, make_lab
from tests.unit.serving_in_memory import DEPLOYMENT, NAME, MemoryServing
from traindyno.cli.lab_choice import LabChoice
from traindyno.core.s3_keys import served_model_key
from traindyno.core.serving.samples import Latency
from traindyno.slices.serving import client as serving_commands
from traindyno.slices.serving.client import lines_after, lines_before

Call = Callable[..., tuple[int, str]]


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> MemoryServing:
    """A lab in which `deploy` finds the model of ``DEPLOYMENT``."""
    lab, target = MemoryServing(), target_of(make_lab()[0])
    monkeypatch.setattr(LabChoice, "find_target", lambda _: target)
    monkeypatch.setattr(serving_commands, "serving_of", lambda _: lab.serving)
    monkeypatch.setattr(serving_commands, "_plan", lambda *_: DEPLOYMENT)
    monkeypatch.setattr(time, "time", lambda: NOW)
    return lab


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    return lambda *words: (start(*words), "".join(capsys.readouterr()))


def test_a_model_is_copied_deployed_once_checked_listed_and_undeployed(lab: MemoryServing, call: Call) -> None:
    status, text = call("deploy", EXECUTION)
    assert status == 0, text
    for said in ("2 answers agree", "latency of 100 requests", f"delete it with: traindyno undeploy {NAME}"):
        assert said in text
    lab.deploy()  # the same requests again
    assert lab.objects.contents[served_model_key(NAME)] == b"the model"
    assert lab.serving.find(NAME) == DEPLOYMENT
    assert NAME in call("endpoints")[1]
    assert call("undeploy", NAME) == (0, f"{NAME} is deleted\n")
    assert not any((*lab.sagemaker.kept.values(), lab.serving.names()))
    assert call("undeploy", NAME)[0] == 1
    lab.sagemaker.add("traindyno--mine")
    assert "no endpoint traindyno--mine has the tag of lab traindyno" in call("undeploy", "traindyno--mine")[1]
    assert set(lab.sagemaker.endpoints) == {"traindyno--mine"}


def test_what_fails_or_differs_is_told_and_deleted(lab: MemoryServing, call: Call) -> None:
    said = {
        "CreateEndpoint": r"\(DeploymentRefused\): SageMaker refused the endpoint: .* limit is 0 Instances",
        "InvokeEndpoint": r"\(InvocationFailed\): .* limit is 0 Instances",
        "no answer": r"\(AnswersDiffer\): .*2 answers differ.*sample 'a bad film': got 0.500, expected 'bad'",
        "no reason": rf"gave no reason\nthe container's log is /aws/sagemaker/Endpoints/{NAME}",
    }
    for fault, pattern in said.items():
        lab.sagemaker.refuse(fault, "ResourceLimitExceeded", "the account-level limit is 0 Instances")
        lab.sagemaker.wrong = {"bad"} if fault == "no answer" else set()
        lab.sagemaker.first_status = "Failed" if fault == "no reason" else "InService"
        status, text = call("deploy", EXECUTION)
        assert re.search(f"{NAME} was not deployed .*{pattern}", text, re.DOTALL), text
        assert (status, any(lab.sagemaker.kept.values())) == (1, False)
    lab.sagemaker.first_status = "Creating"
    lab.deploy()
    status, text = call("undeploy", NAME)
    assert status == 1
    assert "is Creating, and SageMaker deletes no endpoint before that has ended" in text


@pytest.mark.parametrize(
    ("instance", "says"), [("ml.inf2.xlarge", "with CPUs or NVIDIA GPUs, such as ml.c5"), ("local.cpu", "add --local")]
)
def test_options_that_can_not_be_are_refused(call: Call, instance: str, says: str) -> None:
    status, text = call("deploy", EXECUTION, "--instance", instance)
    assert status == 2
    assert says in " ".join(word for word in text.split() if word != "│")


def test_the_cost_is_told_before_and_after() -> None:
    lines = list(lines_before(replace(DEPLOYMENT, max_usd=Decimal("0.30"), hours=9)))
    assert lines[1] == "on ml.c5.xlarge: $0.20 per hour"
    assert lines[2].endswith("it costs $0.30 at most (--max-usd $0.30)")
    after = list(lines_after(DEPLOYMENT, 8, Latency.of([0.018] * 100)))
    assert "p50 18.0 ms, p99 18.0 ms" in after[2]
    # 0.018 s × 1,000,000 = 5 h of $0.204
    assert after[3] == "cost: $0.20 per hour, $1.02 per million requests with one request at a time"
