"""`traindyno run`, `watch` and `report`: start a suite, follow it to its end, show its verdict."""

import secrets
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import typer

from traindyno.api.dataset_lines import data_lines
from traindyno.api.lab_target import LabTarget
from traindyno.api.local_paths import travel_lines
from traindyno.api.staging import StagingArea
from traindyno.api.suite_loading import load_startable_suite
from traindyno.aws import clients
from traindyno.aws.executions import Execution
from traindyno.cli.display.progress import follow
from traindyno.cli.display.verdict_table import print_verdict
from traindyno.cli.inputs.also_send import AlsoSendOption, read_also_send
from traindyno.cli.lab_choice import (
    DEFAULT_FOLDER,
    ExecutionArgument,
    FolderOption,
    FormatOption,
    LabChoice,
    SuiteArgument,
    with_options_of,
)
from traindyno.cli.output import STANDARD_ERROR, STANDARD_OUTPUT, OutputFormat, print_json, tell
from traindyno.core.costs.quantity_text import usd_text
from traindyno.core.errors import PreparationFailed, SuiteInvalid, SuiteRefused, TraindynoError
from traindyno.core.s3_keys import report_data_key, report_html_key
from traindyno.core.serving.servable_suite import why_not_servable
from traindyno.core.suite.suite import Suite
from traindyno.core.verdict.cell_trials import is_measured
from traindyno.core.verdict.report_data import parse_report
from traindyno.sagemaker.serving.serving_request import why_isolated_serves_none

FAILED, REFUSED, NOTHING_MEASURED, INTERRUPTED = 1, 2, 3, 130
# The errors that end an execution before any of its runs started.
REFUSALS = {SuiteInvalid.__name__, SuiteRefused.__name__, PreparationFailed.__name__}
UNSUCCESSFUL = {"FAILED", "TIMED_OUT", "ABORTED"}


class ReportMissing(TraindynoError):
    """The execution has no report: it is still running, or it ended before the first result."""


class ReportUnwritable(TraindynoError):
    """The folder for the report can't be written."""


@with_options_of(LabChoice)
def run(
    choice: LabChoice,
    suite: SuiteArgument,
    name: Annotated[str | None, typer.Option(help="The execution's name; by default the suite's and the time.")] = None,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Follow the execution to its end, or only start it.")
    ] = True,
    also_send: AlsoSendOption = None,
    output: FormatOption = OutputFormat.TABLE,
    folder: FolderOption = DEFAULT_FOLDER,
) -> None:
    """Run a suite and print its verdict."""
    loaded = load_startable_suite(suite)
    allowed = read_also_send(also_send)
    reads = data_lines(loaded.suite, beside=suite.parent, allowed=allowed)
    target = choice.find_target()
    target.require_space()
    for line in (*travel_lines(loaded.document["workload"], beside=suite.parent, allowed=allowed), *reads):
        tell(line)
    stage = StagingArea(
        beside=suite.parent, s3=clients.s3(), bucket=target.deployment.bucket, tell=tell, allowed=allowed
    )
    document = stage.stage_suite(loaded.document)
    execution_id = name or _execution_id(loaded.suite.name)
    target.executions.start(execution_id, document)
    isolated = target.deployment.lab if target.deployment.isolates_network else None
    for line in start_lines(loaded.suite, execution_id, target.option, isolated_lab=isolated):
        tell(line)
    if wait:
        finish(target, follow_to_end(target, execution_id), output, folder)
    elif output is OutputFormat.JSON:
        print_json({"execution_id": execution_id})


def start_lines(suite: Suite, execution_id: str, option: str, *, isolated_lab: str | None = None) -> Iterator[str]:
    """``option`` names the lab in the commands that the lines propose."""
    yield f"started {execution_id}; stop it with: traindyno stop {execution_id}{option}"
    reason = why_not_servable(suite) or (why_isolated_serves_none(isolated_lab) if isolated_lab else None)
    if reason is not None:
        yield f"this execution will have no model to deploy: {reason}"


def _execution_id(suite_name: str) -> str:
    return f"{suite_name}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


@with_options_of(LabChoice)
def watch(
    choice: LabChoice,
    execution: ExecutionArgument,
    output: FormatOption = OutputFormat.TABLE,
    folder: FolderOption = DEFAULT_FOLDER,
) -> None:
    """Follow an execution to its end, then print its verdict."""
    target = choice.find_target()
    finish(target, follow_to_end(target, execution), output, folder)


@with_options_of(LabChoice)
def report(
    choice: LabChoice,
    execution: ExecutionArgument,
    output: FormatOption = OutputFormat.TABLE,
    folder: FolderOption = DEFAULT_FOLDER,
) -> None:
    """Print an execution's verdict and fetch its HTML report."""
    target = choice.find_target()
    finish(target, target.executions.describe(execution), output, folder)


def follow_to_end(target: LabTarget, execution: str) -> Execution:
    """After Ctrl-C it prints what continues and how to stop it; after a second Ctrl-C it ends immediately."""
    try:
        return follow(target, execution, STANDARD_ERROR)
    except KeyboardInterrupt:
        with suppress(KeyboardInterrupt):
            tell(_interrupted_line(target, execution))
        raise typer.Exit(INTERRUPTED) from None


def _interrupted_line(target: LabTarget, execution: str) -> str:
    running = [row for row in target.services.attempts.list_open(execution) if row.end is None]
    usd_per_hour = sum((row.usd_per_hour * row.instance_count for row in running), Decimal(0))
    jobs = "1 training job" if len(running) == 1 else f"{len(running)} training jobs"
    cost = "" if target.is_local or not running else f" at {usd_text(usd_per_hour)} per hour"
    where = f"{execution}{target.option}"
    return (
        f"interrupted: {execution} continues, {jobs} running{cost}; "
        f"watch it: traindyno watch {where}; stop it: traindyno stop {where}"
    )


def finish(target: LabTarget, ended: Execution, output: OutputFormat, folder: Path) -> None:
    """Print the result of an execution and exit with its status."""
    if ended.status in UNSUCCESSFUL:
        tell(f"{ended.execution_id}: {ended.status.lower()}{f': {ended.error}' if ended.error else ''}")
        is_own = ended.error == PreparationFailed.__name__  # a script of the suite, which may fill other disks
        for line in (None if is_own else target.find_full_disk(cause=ended.cause or ""), ended.cause):
            if line:
                tell(line)
        raise typer.Exit(REFUSED if ended.error in REFUSALS else FAILED)
    found = target.results.find_as(report_data_key(ended.execution_id), lambda stored: (stored, parse_report(stored)))
    if found is None:
        raise ReportMissing(f"{ended.execution_id} ({ended.status.lower()}) has no report yet; see: traindyno watch")
    document, report = found
    if output is OutputFormat.JSON:
        print_json(document)
    else:
        print_verdict(STANDARD_OUTPUT, report)
    path = write_report(folder, ended.execution_id, target.results.read(report_html_key(ended.execution_id)))
    tell(f"report: {path}")
    if not any(map(is_measured, report.results)):
        tell(f"no run of {len(report.results)} was measured")
        raise typer.Exit(NOTHING_MEASURED)


def write_report(folder: Path, execution_id: str, content: bytes) -> Path:
    """The file's absolute path. Raises ReportUnwritable."""
    path = (folder / f"{execution_id}.html").resolve()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise ReportUnwritable(
            f"the report can't be written to {path}: {error.strerror}; name another folder with: traindyno report "
            f"{execution_id} --output FOLDER"
        ) from error
    return path
