"""The command line: its commands, and the mapping of errors to messages and exit statuses."""

import shlex
import sys
import tempfile
import traceback
from collections.abc import Mapping
from typing import Annotated, NoReturn

import typer
from botocore.exceptions import BotoCoreError, ClientError

from traindyno import __version__
from traindyno.api.checkout import has_local_cloud, require_checkout
from traindyno.api.lab_target import StillRunning
from traindyno.api.model_check import ConfigurationUnreachable
from traindyno.api.suite_text import InputFileInvalid, SuiteUnreadable
from traindyno.api.trial_rows import TrialsInvalid
from traindyno.aws.account import settings_problem
from traindyno.callbacks.full_disk import disk_text, full_folder, is_disk_full
from traindyno.cli.client import Command, clients_of
from traindyno.cli.command_group import CommandGroup
from traindyno.cli.commands import execution_commands, run_commands, serving_commands
from traindyno.cli.commands.compare_command import compare
from traindyno.cli.commands.doctor_command import doctor
from traindyno.cli.commands.judge_command import judge
from traindyno.cli.commands.plan_command import plan
from traindyno.cli.commands.run_commands import FAILED, REFUSED
from traindyno.cli.output import STANDARD_OUTPUT, tell
from traindyno.core.documents.problems import visible
from traindyno.core.errors import DocumentInvalid, SuiteRefused, TraindynoError
from traindyno.core.run.data_formats import DatasetFilesInvalid
from traindyno.core.serving.deployment import ModelNotServable
from traindyno.features import FEATURES

CLIENTS = clients_of(FEATURES)
REFUSED_INPUT: tuple[type[Exception], ...] = (
    SuiteUnreadable,
    InputFileInvalid,
    TrialsInvalid,
    SuiteRefused,
    DocumentInvalid,
    DatasetFilesInvalid,
    StillRunning,
    ModelNotServable,
    ConfigurationUnreachable,
    *(error for client in CLIENTS for error in client.refusals),
)
# In the order of the help; those of features come before the one that they name.
COMMANDS: Mapping[str, Command] = {
    "plan": (plan, "suites/quickstart.yaml --local"),
    "run": (run_commands.run, "suites/quickstart.yaml --local --name first"),
    "watch": (run_commands.watch, "first --local"),
    "stop": (execution_commands.stop, "first --local"),
    "list": (execution_commands.list_executions, "--local --limit 5"),
    "report": (run_commands.report, "first --local --output reports"),
    "compare": (compare, "before after --tolerance 3% --local"),
    "judge": (judge, "trials.csv --value seconds --cell config --host node"),
    "deploy": (serving_commands.deploy, "first --instance ml.g5.xlarge --hours 8"),
    "endpoints": (serving_commands.endpoints, "--format json"),
    "undeploy": (serving_commands.undeploy, "traindyno--reviews-c0123abcd-4f2a9c"),
    "doctor": (doctor, "--aws --region us-east-1"),
}
MOST_OF_FAULT = 200
NO_ACCOUNT = (
    "Expected an AWS account: name it with --region and --profile, or with aws configure. For the "
    "local cloud on this machine, add --local."
)
commands = typer.Typer(
    cls=CommandGroup,
    help="The price-performance lab for model training: run a suite of measured training jobs, "
    "get a verdict.\n"
    "\n"
    "On this machine: `traindyno local up`, then `traindyno run suites/quickstart.yaml "
    "--local`. In an AWS account: `traindyno doctor --aws` says what is missing, `traindyno "
    "plan SUITE` what a suite costs.",
    epilog="Exit status: 0 success, 1 failure (also where --local finds no local cloud), 2 the "
    "input or the suite is refused, 3 no run was measured (of `local status`: no local cloud "
    "runs), 130 interrupted. docs/README.md lists the pages by task.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _add(own: Mapping[str, Command]) -> None:
    for name, (command, example) in own.items():
        commands.command(name, epilog=f"Example: traindyno {name} {example}")(command)


for name, command in COMMANDS.items():
    for client in CLIENTS:
        if client.before == name:
            _add(client.commands)
    _add({name: command})
if has_local_cloud():
    from traindyno.cli.commands import local_commands  # imports localcloud, which the wheel lacks

    commands.add_typer(local_commands.app, name="local")
else:

    @commands.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
    def local() -> None:
        """The cloud on this machine; needs a checkout of the repository."""
        require_checkout("traindyno local")


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        STANDARD_OUTPUT.print(f"traindyno {__version__}")
        raise typer.Exit


@commands.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


def app() -> None:
    """Exit status: 0 success, 1 failure, 2 input or suite refused, 3 no run was measured, 130
    interrupted.
    """
    try:
        commands()
    except REFUSED_INPUT as error:
        _leave(str(error), REFUSED)
    except TraindynoError as error:
        _leave(f"error: {error}", FAILED)
    except (BotoCoreError, ClientError) as error:
        problem = settings_problem(error)
        _leave(
            f"error: AWS returned: {error}"
            if problem is None
            else f"error: {problem}. {NO_ACCOUNT}",
            FAILED,
        )
    except Exception as error:  # noqa: BLE001  (the last handler: nobody foresaw this one)
        if not isinstance(error, OSError) or not is_disk_full(error):
            _leave(_fault_text(error), FAILED)
        folder = full_folder(error)
        _leave(
            f"error: {error if folder is None else disk_text(folder)}; free space on the disk",
            FAILED,
        )


def _fault_text(error: Exception) -> str:
    """One sentence; the traceback is in a file."""
    with tempfile.NamedTemporaryFile(
        "w", prefix="traindyno-fault-", suffix=".txt", delete=False, encoding="utf-8"
    ) as file:
        file.write(f"traindyno {__version__}: {shlex.join(sys.argv[1:])}\n")
        file.write(visible("".join(traceback.format_exception(error))))
    fault = " ".join(f"{type(error).__name__}: {error}".split())[:MOST_OF_FAULT]
    return (
        f"error: this is a fault of traindyno ({fault}); expected none: please report it with "
        f"{file.name}, which has the command and where it failed"
    )


def _leave(message: str, status: int) -> NoReturn:
    tell(message)
    sys.exit(status)
