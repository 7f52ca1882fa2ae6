"""Options that several commands have: one declaration, the same names everywhere."""

import typer
from typer.testing import CliRunner

from traindyno.cli.options import AccountChoice, LabChoice, with_options_of


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
    asked = answer(LabChoice, "--lab", "mine", "--region", "eu-west-1", "--profile", "work")
    assert asked == LabChoice(lab="mine", region="eu-west-1", profile="work")


def test_the_local_cloud_has_one_lab_of_the_default_name() -> None:
    local, deployed = answer(LabChoice, "--local", "--lab", "mine"), answer(LabChoice, "--lab", "mine")
    assert isinstance(local, LabChoice)
    assert isinstance(deployed, LabChoice)
    assert (local.deployed_name, deployed.deployed_name) == ("traindyno", "mine")


def test_a_choice_has_its_own_fields_only() -> None:
    assert answer(AccountChoice, "--local") == AccountChoice(local=True)
