"""What `traindyno deploy` refuses before anything is started: contradicting options, and a lab without a network."""

from datetime import UTC, datetime

import pytest
from typer.testing import CliRunner

from tests.unit.stubbed import stubbed
from traindyno.aws import clients
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
        (["--transform", "s3://b/x/", "--hours", "3"], "--transform and --keep or --hours"),
    ],
)
def test_options_that_contradict_each_other_are_named(options: list[str], problem: str) -> None:
    answer = CliRunner().invoke(commands, ["deploy", "execution-1", *options])
    assert answer.exit_code == 2
    text = " ".join(word for word in answer.output.split() if word != "│")
    assert f"{problem} can't be combined" in text


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
