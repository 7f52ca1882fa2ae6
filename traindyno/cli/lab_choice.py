"""The lab that a command uses, the options that choose it, and the other options that several
commands have.
"""

import inspect
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from traindyno.api.checkout import require_checkout
from traindyno.api.lab_target import Lab, LabTarget, require_local_service
from traindyno.aws.account import use_profile
from traindyno.cli import option_values
from traindyno.cli.completion import complete_execution
from traindyno.cli.option_rules import Command, Rule, refuse, with_parameters, with_rules
from traindyno.cli.output import OutputFormat
from traindyno.core.lab_names import DEFAULT_LAB

SuiteArgument = Annotated[
    Path, typer.Argument(help="The suite's YAML file, such as suites/quickstart.yaml.")
]
ExecutionArgument = Annotated[
    str,
    typer.Argument(
        help="The execution's name, as `traindyno list` shows it.",
        callback=option_values.execution_name,
        autocompletion=complete_execution,
    ),
]
CellOption = Annotated[
    str | None,
    typer.Option(
        help="The cell, by its id or label; by default the recommended one.",
        callback=option_values.matching(
            re.compile(".+", re.DOTALL), "the id or the label of a cell, as the report shows it"
        ),
    ),
]
FormatOption = Annotated[
    OutputFormat, typer.Option("--format", help="A table to read, or one JSON document.")
]
FolderOption = Annotated[
    Path,
    typer.Option(
        "--output",
        help="The folder for the HTML report, EXECUTION.html. A training's model is written there "
        "too, unless the folder is reports.",
        callback=option_values.folder_to_write,
    ),
]
DEFAULT_FOLDER = Path("reports")

LocalOption = Annotated[bool, typer.Option("--local", help="Use the local cloud of this machine.")]
LabOption = Annotated[
    str,
    typer.Option(
        help="The lab's name, as it was deployed.",
        envvar="TRAINDYNO_LAB",
        callback=option_values.lab_name,
    ),
]
RegionOption = Annotated[
    str | None,
    typer.Option(
        help="The AWS region; by default the region of your AWS settings.",
        callback=option_values.region,
    ),
]
ProfileOption = Annotated[
    str | None,
    typer.Option(
        help="The AWS profile; by default the profile of your AWS settings.",
        callback=option_values.profile,
    ),
]
ONE_LOCAL_LAB = refuse(
    "lab",
    "region",
    "profile",
    beside="local",
    why="the local cloud has one lab, which is in no AWS account",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountChoice:
    """The account that a command uses: the local cloud's, or that of the AWS settings."""

    local: LocalOption = False
    region: RegionOption = None
    profile: ProfileOption = None

    @property
    def chosen(self) -> Lab:
        return Lab(local=self.local, region=self.region, profile=self.profile)

    def choose(self, *, needs_service: bool = True) -> None:
        """Make every AWS client that is created after this call use the chosen account."""
        if self.local:
            require_checkout("--local")
            if needs_service:
                require_local_service()
        environment = self.chosen.environment()
        os.environ.clear()
        os.environ.update(environment)
        use_profile(self.profile)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabChoice(AccountChoice):
    """The lab of the account."""

    lab: LabOption = DEFAULT_LAB

    @property
    def chosen(self) -> Lab:
        """The lab of the variable TRAINDYNO_LAB is one in AWS, so --local overrules it."""
        name = DEFAULT_LAB if self.local else self.lab
        return Lab(local=self.local, name=name, region=self.region, profile=self.profile)

    def find_target(self) -> LabTarget:
        """Choose the account, and find the lab in it."""
        self.choose(needs_service=False)
        return self.chosen.find()


def with_options_of(choice: type[AccountChoice], *rules: Rule) -> Callable[[Command], Command]:
    """Give a command the fields of ``choice`` as options; its first parameter receives them as one
    value.

    ``rules`` say which options exclude or need each other, besides those that choose the lab.
    """
    hints = get_type_hints(choice, include_extras=True)
    added = [
        inspect.Parameter(
            option.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=option.default,
            annotation=hints[option.name],
        )
        for option in fields(choice)
    ]

    def add(command: Command) -> Command:
        _, *own = inspect.signature(command).parameters.values()

        @with_rules(ONE_LOCAL_LAB, *rules)
        @with_parameters([*own, *added])
        @wraps(command)
        def called(**given: Any) -> None:
            chosen = choice(**{option.name: given.pop(option.name) for option in fields(choice)})
            command(chosen, **given)

        return called

    return add
