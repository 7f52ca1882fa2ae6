"""Options of `traindyno deploy` that contradict each other are refused before a lab is looked for."""

import pytest
from typer.testing import CliRunner

from traindyno.cli.main import commands


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
    assert f"expected one of {problem}, got both" in text
