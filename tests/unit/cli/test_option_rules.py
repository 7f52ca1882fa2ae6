"""An option that would have no effect is refused with the reason: no option is ignored without a
word.
"""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from tests.unit.cli.test_bad_values import GOOD, leaves
from traindyno.cli.main import commands

IN_NO_ACCOUNT = (
    "can't be combined with --local: the local cloud has one lab, which is in no AWS account"
)
SUITE = str(Path(__file__).parents[3] / "suites" / "own_script.yaml")
FILES = ("--prices", "prices.yaml", "--quotas", "quotas.yaml")


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text("[profile work]\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("COLUMNS", "2000")


def refusal(*words: str) -> str:
    answer = CliRunner().invoke(commands, words)
    assert answer.exit_code == 2, answer.output
    return " ".join(answer.stderr.replace("│", "").split())


def test_local_excludes_the_choices_of_a_lab_in_aws_in_every_command() -> None:
    asked = set()
    for words, command in leaves(typer.main.get_command(commands)):
        given = [
            GOOD[parameter.name]
            for parameter in command.params
            if parameter.param_type_name == "argument"
        ]
        options = {parameter.name: parameter.opts[0] for parameter in command.params}
        for name, value in (("lab", "mine"), ("region", "eu-west-1"), ("profile", "work")):
            if "local" in options and name in options:
                said = refusal(*words, *given, "--local", options[name], value)
                assert f"{options[name]} {IN_NO_ACCOUNT}" in said
                asked.add((*words, options[name]))
    assert ("watch", "--lab") in asked
    assert ("reprice", "--lab-region") in asked
    assert len(asked) > 30


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (
            ("plan", SUITE, *FILES, "--local"),
            "--local can't be combined with --prices and --quotas: with both files",
        ),
        (
            ("plan", SUITE, *FILES, "--lab", "mine"),
            "--lab can't be combined with --prices and --quotas",
        ),
        (
            ("run", SUITE, "--no-wait", "--output", "here"),
            "--output can't be combined with --no-wait: the report is",
        ),
        (
            ("reprice", "e", "--prices", "p.yaml", "--region", "us-east-1"),
            "--region can't be combined with --prices",
        ),
        (
            ("claims", "c.yaml", "--local"),
            "--local needs EXECUTION: without an execution no measurement is compared",
        ),
        (("claims", "c.yaml", "--lab", "mine"), "--lab needs EXECUTION"),
        (
            ("deploy", "e", "--instance", "local.cpu"),
            "local.cpu is an instance type of the local cloud: add --local",
        ),
        (("doctor", "--lab", "mine"), "--lab needs --aws: without it only this machine is checked"),
        (("doctor", "--profile", "work"), "--profile needs --aws"),
    ],
)
def test_an_option_without_effect_is_refused(words: tuple[str, ...], reason: str) -> None:
    assert reason in refusal(*words)


def test_an_option_with_the_default_excludes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The local cloud's lab has the default name, and --wait is what a report needs."""
    monkeypatch.chdir(Path(SUITE).parent)
    for words in (
        ("watch", "e", "--local", "--lab", "traindyno", "--limit"),
        ("run", "--wait", "--output", "x"),
    ):
        assert "can't be combined" not in refusal(*words)
