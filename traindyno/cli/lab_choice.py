"""The lab that a command uses, the options that choose it, and the other options that several commands have."""

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from traindyno.aws import clients
from traindyno.aws.deployment import Deployment, find_deployment
from traindyno.aws.executions import Executions
from traindyno.cli.checkout import require_checkout
from traindyno.cli.output import OutputFormat
from traindyno.core.lab_names import DEFAULT_LAB, lab_stack_name
from traindyno.lab.environment import BucketEnvironment
from traindyno.lab.services import LabServices, open_services
from traindyno.store.results_bucket import ResultsBucket

SuiteArgument = Annotated[Path, typer.Argument(help="The suite's YAML file.", exists=False)]
ExecutionArgument = Annotated[str, typer.Argument(help="The execution's name, as `traindyno list` shows it.")]
FormatOption = Annotated[OutputFormat, typer.Option("--format", help="A table to read, or one JSON document.")]
FolderOption = Annotated[Path, typer.Option("--output", help="The folder that the HTML report is written to.")]
DEFAULT_FOLDER = Path("reports")
KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY

LocalOption = Annotated[bool, typer.Option("--local", help="Use the local cloud of this machine.")]
LabOption = Annotated[str, typer.Option(help="The lab's name, as it was deployed.", envvar="TRAINDYNO_LAB")]
RegionOption = Annotated[str | None, typer.Option(help="The AWS region; by default that of your AWS settings.")]
ProfileOption = Annotated[str | None, typer.Option(help="The AWS profile; by default that of your AWS settings.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabTarget:
    """The lab that a command uses: the local cloud's, or one in an AWS account."""

    is_local: bool
    deployment: Deployment
    executions: Executions
    services: LabServices

    @property
    def results(self) -> ResultsBucket:
        return self.services.bucket

    @property
    def option(self) -> str:
        """The options that select the same lab in another command."""
        if self.is_local:
            return " --local"
        return "" if self.deployment.lab == DEFAULT_LAB else f" --lab {self.deployment.lab}"

    def find_stall(self) -> str | None:
        """Why the local cloud can't make progress; None if it works, and for a lab on AWS."""
        if not self.is_local:
            return None
        from localcloud import cloud, home  # noqa: PLC0415  (the wheel lacks it)

        return cloud.find_stall(home.Home.from_environment())

    def require_space(self) -> None:
        """Raises DiskFull if the disk of the local cloud has no space for another execution."""
        if self.is_local:
            from localcloud import disk_space, home  # noqa: PLC0415  (the wheel lacks it)

            disk_space.require_space(home.Home.from_environment().folder)

    def find_full_disk(self, *, cause: str) -> str | None:
        """The sentence about the disk of the local cloud, if it led to ``cause``; None for a lab on AWS."""
        if not self.is_local:
            return None
        from localcloud import disk_space, home  # noqa: PLC0415  (the wheel lacks it)

        return disk_space.find_full_disk(home.Home.from_environment().folder, cause=cause)

    @property
    def function_logs(self) -> str:
        """Where the errors of the lab's functions are."""
        if not self.is_local:
            return f"the log groups {lab_stack_name(self.deployment.lab)}-… of CloudWatch Logs"
        from localcloud import cloud, home  # noqa: PLC0415  (the wheel lacks it)

        return str(home.Home.from_environment().log(cloud.MINISTACK))


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountChoice:
    """The account that a command uses: the local cloud's, or that of the AWS settings."""

    local: LocalOption = False
    region: RegionOption = None
    profile: ProfileOption = None

    def choose(self) -> None:
        """Make every AWS client that is created after this call use the chosen account."""
        if self.local:
            environment = _local_environment()
            os.environ.clear()
            os.environ.update(environment)
        if self.profile:
            os.environ["AWS_PROFILE"] = self.profile
        if self.region and not self.local:
            os.environ["AWS_REGION"] = os.environ["AWS_DEFAULT_REGION"] = self.region


def _local_environment() -> dict[str, str]:
    require_checkout("--local")
    from localcloud import cloud, home  # noqa: PLC0415  (the wheel lacks it)

    return cloud.environment_of(home.Home.from_environment())


@dataclass(frozen=True, slots=True, kw_only=True)
class LabChoice(AccountChoice):
    """The lab of the account."""

    lab: LabOption = DEFAULT_LAB

    @property
    def deployed_name(self) -> str:
        return DEFAULT_LAB if self.local else self.lab

    def find_target(self) -> LabTarget:
        """Choose the account, and find the lab in it."""
        self.choose()
        deployment = find_deployment(clients.cloudformation(), self.deployed_name)
        environment = BucketEnvironment(lab=deployment.lab, table=deployment.table, bucket=deployment.bucket)
        return LabTarget(
            is_local=self.local,
            deployment=deployment,
            executions=Executions(clients.stepfunctions(), deployment.state_machine_arn),
            services=open_services(environment),
        )


def with_options_of(choice: type[AccountChoice]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the fields of ``choice`` as options; its first parameter receives them as one value.

    Typer reads a command's options from its signature, so the fields are added to that.
    """
    hints = get_type_hints(choice, include_extras=True)
    added = [
        inspect.Parameter(each.name, KEYWORD_ONLY, default=each.default, annotation=hints[each.name])
        for each in fields(choice)
    ]

    def add(command: Callable[..., None]) -> Callable[..., None]:
        _, *own = inspect.signature(command).parameters.values()

        @wraps(command)
        def called(**given: Any) -> None:
            chosen = choice(**{each.name: given.pop(each.name) for each in fields(choice)})
            command(chosen, **given)

        parameters = [each.replace(kind=KEYWORD_ONLY) for each in own] + added
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # Typer reads it
        called.__annotations__ = {each.name: each.annotation for each in parameters}
        return called

    return add
