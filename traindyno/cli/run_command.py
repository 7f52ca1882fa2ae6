"""`traindyno run`: upload the suite's local files, start it, follow it, show its verdict."""

import secrets
from datetime import UTC, datetime
from typing import Annotated

import typer

from traindyno.aws import clients
from traindyno.cli.execution_commands import finish, follow_to_end
from traindyno.cli.options import DEFAULT_FOLDER, FolderOption, FormatOption, LabChoice, SuiteArgument, with_options_of
from traindyno.cli.output import Format, print_json, tell
from traindyno.cli.staging import Stage
from traindyno.cli.suite_loading import load_startable_suite


@with_options_of(LabChoice)
def run(
    choice: LabChoice,
    suite: SuiteArgument,
    name: Annotated[str | None, typer.Option(help="The execution's name; by default the suite's and the time.")] = None,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Follow the execution to its end, or only start it.")
    ] = True,
    output: FormatOption = Format.TABLE,
    folder: FolderOption = DEFAULT_FOLDER,
) -> None:
    """Run a suite and print its verdict."""
    loaded = load_startable_suite(suite)
    target = choice.find_target()
    stage = Stage(beside=suite.parent, s3=clients.s3(), bucket=target.deployment.bucket, tell=tell)
    document = stage.stage_suite(loaded.document)
    execution_id = name or _execution_id(loaded.suite.name)
    target.executions.start(execution_id, document)
    tell(f"started {execution_id}; stop it with: traindyno stop {execution_id}{target.option}")
    if wait:
        finish(target, follow_to_end(target, execution_id), output, folder)
    elif output is Format.JSON:
        print_json({"execution_id": execution_id})


def _execution_id(suite_name: str) -> str:
    return f"{suite_name}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
