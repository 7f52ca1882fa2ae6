"""Options that several commands have: one declaration, the same names everywhere."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import boto3
import pytest
import typer
from rich.text import Text
from typer.testing import CliRunner

from tests.unit.cli.test_bad_values import leaves
from tests.unit.cli.test_execution_receipt import target_of
from tests.unit.planned_lab import empty_lab
from traindyno.api import lab_target
from traindyno.api.lab_target import Lab, LabTarget
from traindyno.aws import clients
from traindyno.aws.deployment import LabNotDeployed
from traindyno.cli import option_values
from traindyno.cli.commands import serving_commands
from traindyno.cli.lab_choice import AccountChoice, LabChoice, with_options_of
from traindyno.cli.main import app, commands

REPO_ROOT = Path(__file__).parents[3]


def answer(choice: type[AccountChoice], *words: str) -> AccountChoice:
    """What a command receives as its first parameter."""
    received: list[AccountChoice] = []
    app = typer.Typer()

    @app.command()
    @with_options_of(choice)
    def command(chosen: AccountChoice, execution: str) -> None:
        assert execution == "exec-1"
        received.append(chosen)

    done = CliRunner().invoke(app, ["exec-1", *words])
    assert done.exit_code == 0, done.output
    (chosen,) = received
    return chosen


def test_options_become_one_value_beside_the_commands_own() -> None:
    assert answer(LabChoice) == LabChoice(local=False, region=None, profile=None, lab="traindyno")
    asked = answer(LabChoice, "--lab", "mine", "--region", "eu-west-1")
    assert asked == LabChoice(lab="mine", region="eu-west-1")
    assert answer(AccountChoice, "--local") == AccountChoice(local=True)


def test_the_local_cloud_has_one_lab_of_the_default_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable names the lab that a person usually means; --local means the other one."""
    deployed = answer(LabChoice, "--lab", "mine")
    monkeypatch.setenv("TRAINDYNO_LAB", "mine")
    local = answer(LabChoice, "--local")
    assert isinstance(local, LabChoice)
    assert isinstance(deployed, LabChoice)
    assert (local.chosen.name, deployed.chosen.name) == ("traindyno", "mine")


@pytest.mark.usefixtures("no_client")
def test_a_chosen_account_is_used_by_later_clients(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "environ", {"AWS_REGION": "us-east-1", "AWS_PROFILE": "own"})
    AccountChoice(region="eu-west-1").choose()
    assert os.environ == {
        "AWS_REGION": "eu-west-1",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_PROFILE": "own",
    }
    (tmp_path / "config").write_text("[profile work]\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    AccountChoice(profile="work").choose()
    assert os.environ["AWS_PROFILE"] == "work"


def test_proposed_commands_name_the_chosen_region_and_profile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = SimpleNamespace(lab="mine", table="t", bucket="b", state_machine_arn="arn")
    monkeypatch.setattr(lab_target, "find_deployment", lambda *_: found)
    for name in ("clients", "open_services"):
        monkeypatch.setattr(lab_target, name, MagicMock())
    target = Lab(name="mine", region="eu-west-1", profile="my work").find()
    assert target.option == " --lab mine --region eu-west-1 --profile 'my work'"


def help_texts(command: Any) -> Iterator[str]:
    yield from filter(
        None, [command.help, *(getattr(parameter, "help", None) for parameter in command.params)]
    )
    for inner in getattr(command, "commands", {}).values():
        yield from help_texts(inner)


def test_no_word_of_a_help_text_is_taken_for_markup() -> None:
    """The terminal's renderer drops words in square brackets, such as the name of an extra."""
    texts = list(help_texts(typer.main.get_command(commands)))
    assert len(texts) > 50
    assert [text for text in texts if Text.from_markup(text).plain != text] == []


def test_every_command_shows_a_working_example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPO_ROOT)
    examples = dict(leaves(typer.main.get_command(commands)))
    assert len(examples) > 10
    for words, command in examples.items():
        program, *written = (command.epilog or "").removeprefix("Example: ").split()
        assert (program, *written[: len(words)]) == ("traindyno", *words)
        command.make_context("traindyno", written[len(words) :])


def test_two_swapped_letters_are_one_mistake() -> None:
    with pytest.raises(typer.BadParameter, match='did you mean "us-east-1"'):
        option_values.region("us-esat-1")


@pytest.mark.parametrize(
    "region", ["cn-north-1", "us-gov-west-1", "eusc-de-east-1", "us-iso-east-1"]
)
def test_a_region_of_another_partition_is_no_typing_mistake(region: str) -> None:
    with pytest.raises(
        typer.BadParameter,
        match=f'got "{region}", expected a region of AWS\'s standard partition, such',
    ):
        option_values.region(region)


@pytest.mark.parametrize(
    ("line", "runs", "found"),
    [
        ("", True, "plan"),
        ("watch", True, "mine"),
        ("watch", False, "more"),
        ("watch --local", False, ""),
        ("train --region eu-west-1 --lab x", True, "more"),
        ("compare before", True, "mine"),
        ("undeploy", True, "model"),
    ],
)
def test_a_shell_completes_commands_and_the_names_of_the_lab(
    line: str, runs: bool, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a choice, those of the local cloud; where that does not run, those in AWS."""

    @contextmanager
    def opened(lab: Lab) -> Iterator[LabTarget]:
        if lab.local and not runs:
            raise LabNotDeployed
        target = target_of(empty_lab())
        for name in ("mine" if lab.local else "more", "other"):
            target.executions.start(name, {})
        yield target

    monkeypatch.setattr(Lab, "opened", opened)
    serving = SimpleNamespace(names=lambda: ["model", "other"])
    monkeypatch.setattr(serving_commands, "serving_of", lambda _: serving)
    words = {
        "COMP_WORDS": f"traindyno {line} {found[:2]}",
        "COMP_CWORD": f"{1 + len(line.split())}",
        "_TRAINDYNO_COMPLETE": "complete_bash",
    }
    assert CliRunner(env=words).invoke(commands, prog_name="traindyno").output.strip() == found


@pytest.fixture
def no_client(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The session and client of an earlier test have the credentials that it saw, whatever the
    variables are now.
    """
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    clients.cloudformation.cache_clear()
    yield
    clients.cloudformation.cache_clear()


@pytest.mark.usefixtures("no_client")
@pytest.mark.parametrize("region", [None, "us-east-1"])
def test_without_an_account_the_local_cloud_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], region: str | None
) -> None:
    """botocore has no region, or a region and no credentials: in either case AWS was not asked."""
    nowhere = dict.fromkeys(("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"), os.devnull)
    given = {} if region is None else {"AWS_REGION": region, "AWS_DEFAULT_REGION": region}
    monkeypatch.setattr(
        os, "environ", {**nowhere, **given, "AWS_EC2_METADATA_DISABLED": "true", "HOME": "/nowhere"}
    )
    monkeypatch.setattr(sys, "argv", ["traindyno", "watch", "exec-1"])
    with pytest.raises(SystemExit) as ended:
        app()
    assert ended.value.code == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "AWS returned" not in said
    assert "For the local cloud on this machine, add --local." in said
