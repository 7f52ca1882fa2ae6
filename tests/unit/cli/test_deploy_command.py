"""What `traindyno deploy` refuses before anything is started: contradicting options, and a lab without a network."""

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.unit.stubbed import stubbed
from traindyno.aws import clients
from traindyno.cli.commands.deploy_command import staged_input
from traindyno.cli.inputs.deployment_choice import DeploymentChoice
from traindyno.cli.main import commands
from traindyno.core.lab_names import ISOLATED_OUTPUT, LabOutput
from traindyno.core.serving.deployment import ModelNotServable


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--serverless", "2048", "--transform", "s3://b/x/"], "--serverless and --transform"),
        (["--serverless", "2048", "--instance", "ml.g5.xlarge"], "--serverless and --instance or --count"),
        (["--serverless", "2048", "--count", "2"], "--serverless and --instance or --count"),
        (["--keep", "--hours", "3"], "--keep and --hours"),
        (["--transform", "s3://b/x/", "--keep"], "--transform and --keep"),
    ],
)
def test_options_that_contradict_each_other_are_named(options: list[str], problem: str) -> None:
    answer = CliRunner().invoke(commands, ["deploy", "execution-1", *options])
    assert answer.exit_code == 2
    text = " ".join(word for word in answer.output.split() if word != "│")
    assert f"{problem} can't be combined" in text


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--count", "101"], "got 101, expected at most 100"),
        (["--transform", "s3://b/x/", "--hours", "121"], "got 121, expected at most 120 for a transform job"),
        (["--hours", "inf"], "got inf, expected a finite number"),
        (["--also-send", "."], "only --transform sends files of this machine"),
    ],
)
def test_what_exceeds_a_bound_is_refused_with_the_bound(options: list[str], problem: str) -> None:
    answer = CliRunner().invoke(commands, ["deploy", "execution-1", *options])
    assert answer.exit_code == 2
    assert problem in " ".join(word for word in answer.output.split() if word != "│")


def test_a_transform_sends_what_is_allowed_with_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a.jsonl", ".b.jsonl", ".c.jsonl"):
        (tmp_path / name).write_text('{"inputs": "a"}\n')
    target: Any = SimpleNamespace(deployment=SimpleNamespace(bucket="results"))
    sent: list[str] = []
    with stubbed("s3") as (s3, stubber):
        monkeypatch.setattr(clients, "s3", lambda: s3)
        event = "provide-client-params.s3.PutObject"
        s3.meta.events.register_first(event, lambda params, **_: sent.append(params["Key"]))
        stubber.add_response("list_objects_v2", {})
        for _ in range(2):
            stubber.add_response("put_object", {})
        choice = DeploymentChoice(transform=str(tmp_path), also_send=[tmp_path / ".b.jsonl"])
        uri = staged_input(choice, target)
    assert uri is not None
    assert sorted(sent) == [f"{uri.removeprefix('s3://results/')}{name}" for name in (".b.jsonl", "a.jsonl")]
    assert "2 files" in capsys.readouterr().err


def test_an_isolated_lab_deploys_no_model_and_nothing_is_read_or_started(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = [{"OutputKey": name, "OutputValue": "x"} for name in (*LabOutput, ISOLATED_OUTPUT)]
    at = datetime(2026, 11, 22, tzinfo=UTC)
    stack = {"StackName": "vault-lab", "CreationTime": at, "StackStatus": "CREATE_COMPLETE", "Outputs": outputs}
    with stubbed("cloudformation") as (cloudformation, stubber), stubbed("s3") as (s3, _), stubbed("dynamodb") as _:
        stubber.add_response("describe_stacks", {"Stacks": [stack]}, {"StackName": "vault-lab"})
        monkeypatch.setattr(clients, "cloudformation", lambda: cloudformation)
        monkeypatch.setattr(clients, "s3", lambda: s3)
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        answer = CliRunner().invoke(commands, ["deploy", "execution-1", "--lab", "vault"])
    assert isinstance(answer.exception, ModelNotServable)
    assert "lab vault has isolate_network=on" in str(answer.exception)
