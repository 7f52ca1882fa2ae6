"""A state that waits for its token ends in the local cloud as on AWS: by an answer, an error, or
its time limit.

Executions that AWS would not start are refused.
"""

import io
import json
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from localcloud import cloud
from localcloud.worker_fork_server import CALLS_FILE_VARIABLE
from tests.local.chaos_lab import WAIT_SCALE
from tests.local.local_lab import LocalLab

pytestmark = [pytest.mark.local, pytest.mark.nightly]
FUNCTION = """
import json
from pathlib import Path

import boto3


class Throttled(Exception):
    pass


def handle(event, context):
    number = event["attempt"]
    with Path(event["tokens"]).open("a") as tokens:
        tokens.write(event["token"] + chr(10))
    if number in event["answers_in"]:
        answer = json.dumps({"in": number})
        boto3.client("stepfunctions").send_task_success(taskToken=event["token"], output=answer)
    if number < event["fails"]:
        raise Throttled(f"attempt {number}")
"""
RETRIES = 3
CASES: dict[str, dict[str, Any]] = {
    "retried": {"fails": 2, "answers_in": [2], "seconds": 60},
    "caught": {"fails": 9, "answers_in": [], "seconds": 60},
    "answered": {"fails": 9, "answers_in": [0], "seconds": 60},
    "silent": {"fails": 0, "answers_in": [], "seconds": 1},
    "no number": {"fails": 0, "answers_in": [], "seconds": "soon"},
    "no time": {"fails": 0, "answers_in": [], "seconds": 0},
}
ENDED_WITHIN_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The end of an execution, with a token for each call of the function."""

    status: str
    error: str | None
    output: Any
    tokens: list[str]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalLab, str]]:
    """A local cloud where only this state machine is deployed."""
    lab = LocalLab(tmp_path_factory.mktemp("waiting"))
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv(
                CALLS_FILE_VARIABLE, raising=False
            )  # another cloud of this process records our handlers' calls
            for name, value in WAIT_SCALE.items():
                patch.setenv(name, value)
            cloud.start(lab.home, tell=lambda _: None)
        yield lab, make_machine(lab)
    finally:
        cloud.stop(lab.home)


def make_machine(lab: LocalLab) -> str:
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("index.py", FUNCTION)
    role = "arn:aws:iam::000000000000:role/any"
    function = lab.client("lambda").create_function(
        FunctionName="waited-for",
        Runtime="python3.14",
        Handler="index.handle",
        Role=role,
        Code={"ZipFile": code.getvalue()},
        Timeout=30,
    )
    made = lab.client("stepfunctions").create_state_machine(
        name="waiting", roleArn=role, definition=json.dumps(definition(function["FunctionArn"]))
    )
    return str(made["stateMachineArn"])


def definition(function: str) -> dict[str, Any]:
    payload = {
        name: f"$.{name.removesuffix('.$')}" for name in ("fails.$", "answers_in.$", "tokens.$")
    }
    task = {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
        "Parameters": {
            "FunctionName": function,
            "Payload": {"token.$": "$$.Task.Token", "attempt.$": "$$.State.RetryCount", **payload},
        },
        "TimeoutSecondsPath": "$.seconds",
        "Retry": [
            {
                "ErrorEquals": ["Throttled"],
                "IntervalSeconds": 1,
                "MaxAttempts": RETRIES,
                "BackoffRate": 1,
            }
        ],
        "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.failure", "Next": "Caught"}],
        "End": True,
    }
    return {"StartAt": "Wait", "States": {"Wait": task, "Caught": {"Type": "Succeed"}}}


@pytest.fixture(scope="module")
def ended(
    machine: tuple[LocalLab, str], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Ended]:
    """Every case, run at once."""
    lab, arn = machine
    folder = Path(tmp_path_factory.mktemp("tokens"))
    steps = lab.client("stepfunctions")
    started = {
        name: steps.start_execution(
            stateMachineArn=arn, input=json.dumps({**case, "tokens": str(folder / name)})
        )["executionArn"]
        for name, case in CASES.items()
    }
    return {name: wait_for(steps, execution, folder / name) for name, execution in started.items()}


def wait_for(steps: Any, execution: str, tokens: Path) -> Ended:
    deadline = time.monotonic() + ENDED_WITHIN_SECONDS
    while (described := steps.describe_execution(executionArn=execution))["status"] == "RUNNING":
        assert time.monotonic() < deadline, f"{tokens.name}: runs for ever"
        time.sleep(0.1)
    return Ended(
        status=described["status"],
        error=described.get("error"),
        output=json.loads(described.get("output", "null")),
        tokens=tokens.read_text().splitlines() if tokens.exists() else [],
    )


def test_the_error_of_a_function_is_retried_with_a_new_token(ended: dict[str, Ended]) -> None:
    retried = ended["retried"]
    assert (retried.status, retried.output) == ("SUCCEEDED", {"in": 2})
    assert len(retried.tokens) == len(set(retried.tokens)) == 3


def test_the_error_of_a_function_is_caught_after_the_last_retry(ended: dict[str, Ended]) -> None:
    caught = ended["caught"]
    assert (caught.status, caught.output["failure"]["Error"]) == ("SUCCEEDED", "Throttled")
    assert json.loads(caught.output["failure"]["Cause"])["errorMessage"] == f"attempt {RETRIES}"
    assert len(caught.tokens) == 1 + RETRIES


def test_an_answer_counts_though_its_function_fails_afterwards(ended: dict[str, Ended]) -> None:
    assert (ended["answered"].status, ended["answered"].output) == ("SUCCEEDED", {"in": 0})


def test_a_task_without_an_answer_ends_at_the_limit_in_its_input(ended: dict[str, Ended]) -> None:
    silent = ended["silent"]
    assert (silent.status, silent.output["failure"]["Error"]) == ("SUCCEEDED", "States.Timeout")
    assert len(silent.tokens) == 1


@pytest.mark.parametrize("case", ["no number", "no time"])
def test_a_limit_without_a_positive_integer_fails_the_execution(
    ended: dict[str, Ended], case: str
) -> None:
    """Nothing retries or catches this error, and the function is not called."""
    assert (ended[case].status, ended[case].error, ended[case].tokens) == (
        "FAILED",
        "States.Runtime",
        [],
    )
