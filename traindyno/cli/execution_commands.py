"""Commands on an existing execution: watch, stop, list, report."""

import time
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from traindyno.aws.executions import Execution
from traindyno.cli.options import (
    DEFAULT_FOLDER,
    ExecutionArgument,
    FolderOption,
    FormatOption,
    LabChoice,
    with_options_of,
)
from traindyno.cli.output import STANDARD_ERROR, STANDARD_OUTPUT, Format, print_json, tell
from traindyno.cli.progress import follow
from traindyno.cli.receipt_command import summary
from traindyno.cli.target import Target
from traindyno.cli.verdict_table import print_verdict
from traindyno.core.costs.quantity_text import usd_text
from traindyno.core.errors import PreparationFailed, SuiteInvalid, SuiteRefused, TraindynoError
from traindyno.core.s3_keys import report_data_key, report_html_key
from traindyno.core.verdict.report_data import parse_report

STOP_SECONDS = 600.0
FAILED, REFUSED, NOTHING_MEASURED, INTERRUPTED = 1, 2, 3, 130
# What ends an execution before any run of it was started.
REFUSALS = {SuiteInvalid.__name__, SuiteRefused.__name__, PreparationFailed.__name__}
UNSUCCESSFUL = {"FAILED", "TIMED_OUT", "ABORTED"}


class ReportMissing(TraindynoError):
    """The execution has no report: it is still running, or it ended before the first result."""


class ReportUnwritable(TraindynoError):
    """The folder for the report can't be written."""


class JobsStillRunning(TraindynoError):
    """Training jobs of a stopped execution did not end in time."""


@with_options_of(LabChoice)
def watch(
    choice: LabChoice,
    execution: ExecutionArgument,
    output: FormatOption = Format.TABLE,
    folder: FolderOption = DEFAULT_FOLDER,
) -> None:
    """Follow an execution to its end, then print its verdict."""
    target = choice.find_target()
    finish(target, follow_to_end(target, execution), output, folder)


@with_options_of(LabChoice)
def report(
    choice: LabChoice,
    execution: ExecutionArgument,
    output: FormatOption = Format.TABLE,
    folder: FolderOption = DEFAULT_FOLDER,
) -> None:
    """Print an execution's verdict and fetch its HTML report."""
    target = choice.find_target()
    finish(target, target.executions.describe(execution), output, folder)


@with_options_of(LabChoice)
def list_executions(
    choice: LabChoice,
    output: FormatOption = Format.TABLE,
    limit: Annotated[int, typer.Option(min=1, help="How many, the newest first.")] = 20,
) -> None:
    """List executions, the newest first."""
    target = choice.find_target()
    rows = [_list_row(target, found) for found in target.executions.list_latest(limit)]
    if output is Format.JSON:
        print_json(rows)
        return
    table = Table("execution", "status", "started", "runs", "outcome", pad_edge=False)
    for row in rows:
        started = row["started_at"].replace("T", " ")[:19]
        runs = "unknown" if row["run_count"] is None else str(row["run_count"])
        table.add_row(row["execution_id"], row["status"].lower(), started, runs, row["headline"] or row["error"] or "")
    STANDARD_OUTPUT.print(table)


@with_options_of(LabChoice)
def stop(
    choice: LabChoice,
    execution: ExecutionArgument,
) -> None:
    """Stop an execution, wait until its training jobs are stopped, and print its cost."""
    target = choice.find_target()
    found = target.executions.describe(execution)
    if not found.is_running:
        tell(f"{execution} has ended already ({found.status.lower()})")
    else:
        target.executions.stop(execution, reason="traindyno stop")
        tell(f"stopping {execution}")
    _await_jobs(target, execution)
    tell(f"{execution} is stopped; all its training jobs have ended")
    for line in summary(target.receipt(execution)):
        tell(line)
    tell(f"to list each job: traindyno receipt {execution}{target.option}")


def follow_to_end(target: Target, execution: str) -> Execution:
    """After Ctrl-C it prints what continues and how to stop it; after a second Ctrl-C it ends at once."""
    try:
        return follow(target, execution, STANDARD_ERROR)
    except KeyboardInterrupt:
        with suppress(KeyboardInterrupt):
            tell(_interrupted_line(target, execution))
        raise typer.Exit(INTERRUPTED) from None


def _interrupted_line(target: Target, execution: str) -> str:
    running = list(target.services.attempts.list_open(execution))
    usd_per_hour = sum((row.usd_per_hour * row.instance_count for row in running), Decimal(0))
    jobs = "1 training job" if len(running) == 1 else f"{len(running)} training jobs"
    cost = "" if target.is_local or not running else f" at {usd_text(usd_per_hour)} per hour"
    where = f"{execution}{target.option}"
    return (
        f"interrupted: {execution} continues, {jobs} running{cost}; "
        f"watch it: traindyno watch {where}; stop it: traindyno stop {where}"
    )


def finish(target: Target, ended: Execution, output: Format, folder: Path) -> None:
    """Print the result of an execution and exit with its status."""
    if ended.status in UNSUCCESSFUL:
        tell(f"{ended.execution_id}: {ended.status.lower()}{f': {ended.error}' if ended.error else ''}")
        if ended.cause:
            tell(ended.cause)
        raise typer.Exit(REFUSED if ended.error in REFUSALS else FAILED)
    document = target.results.find_json(report_data_key(ended.execution_id))
    if document is None:
        raise ReportMissing(f"{ended.execution_id} ({ended.status.lower()}) has no report yet; see: traindyno watch")
    report = parse_report(document)
    if output is Format.JSON:
        print_json(document)
    else:
        print_verdict(STANDARD_OUTPUT, report)
    path = write_report(folder, ended.execution_id, target.results.read(report_html_key(ended.execution_id)))
    tell(f"report: {path}")
    if all(result.samples_per_second is None for result in report.results):
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


def _await_jobs(target: Target, execution: str) -> None:
    deadline = time.monotonic() + STOP_SECONDS
    while names := [row.job_name for row in target.services.attempts.list_open(execution)]:
        if time.monotonic() > deadline:
            raise JobsStillRunning(
                f"after {STOP_SECONDS:.0f} s these training jobs have not ended: {', '.join(names)}; "
                "the lab's ReconcileRuns function continues to stop them"
            )
        time.sleep(1)


def _list_row(target: Target, found: Execution) -> dict[str, Any]:
    row = target.services.executions.find(found.execution_id)
    return {
        "execution_id": found.execution_id,
        "status": found.status,
        "started_at": _time_text(found.started_at),
        "ended_at": None if found.ended_at is None else _time_text(found.ended_at),
        "run_count": row.run_count if row else None,
        "headline": row.judgement.headline if row and row.judgement else None,
        "error": found.error,
    }


def _time_text(epoch_seconds: float) -> str:
    return datetime.fromtimestamp(epoch_seconds, UTC).isoformat(timespec="seconds")
