"""Commands on executions that are there already: watch, stop, list, report."""

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from traindyno.aws.executions import Execution
from traindyno.cli.output import STANDARD_ERROR, STANDARD_OUTPUT, Format, print_json, tell
from traindyno.cli.progress import follow
from traindyno.cli.receipt_table import summary
from traindyno.cli.target import LabOption, LocalOption, ProfileOption, RegionOption, Target, find_target
from traindyno.cli.verdict_table import print_verdict
from traindyno.core.errors import PreparationFailed, SuiteInvalid, SuiteRefused, TraindynoError
from traindyno.core.lab_names import DEFAULT_LAB
from traindyno.core.s3_keys import report_data_key, report_html_key
from traindyno.core.verdict.report_data import parse_report

FormatOption = Annotated[Format, typer.Option("--format", help="A table to read, or one JSON document.")]
ExecutionArgument = Annotated[str, typer.Argument(help="The execution's name, as `traindyno list` shows it.")]
FolderOption = Annotated[Path, typer.Option("--output", help="The folder that the HTML report is written to.")]
DEFAULT_FOLDER = Path("reports")
STOP_SECONDS = 600.0
FAILED, REFUSED = 1, 2
# What ends an execution before any run of it was started.
REFUSALS = {SuiteInvalid.__name__, SuiteRefused.__name__, PreparationFailed.__name__}
UNSUCCESSFUL = {"FAILED", "TIMED_OUT", "ABORTED"}


class ReportMissing(TraindynoError):
    """The execution has no report: it is still running, or it ended before there was anything to report."""


class JobsStillRunning(TraindynoError):
    """Training jobs of a stopped execution did not end in time."""


def watch(
    execution: ExecutionArgument,
    local: LocalOption = False,
    lab: LabOption = DEFAULT_LAB,
    region: RegionOption = None,
    profile: ProfileOption = None,
    output: FormatOption = Format.TABLE,
    folder: FolderOption = DEFAULT_FOLDER,
) -> None:
    """Follow an execution to its end, then print its verdict."""
    target = find_target(is_local=local, lab=lab, region=region, profile=profile)
    finish(target, follow(target, execution, STANDARD_ERROR), output, folder)


def report(
    execution: ExecutionArgument,
    local: LocalOption = False,
    lab: LabOption = DEFAULT_LAB,
    region: RegionOption = None,
    profile: ProfileOption = None,
    output: FormatOption = Format.TABLE,
    folder: FolderOption = DEFAULT_FOLDER,
) -> None:
    """Print an execution's verdict and fetch its HTML report."""
    target = find_target(is_local=local, lab=lab, region=region, profile=profile)
    finish(target, target.executions.describe(execution), output, folder)


def list_executions(
    local: LocalOption = False,
    lab: LabOption = DEFAULT_LAB,
    region: RegionOption = None,
    profile: ProfileOption = None,
    output: FormatOption = Format.TABLE,
    limit: Annotated[int, typer.Option(min=1, help="How many, the newest first.")] = 20,
) -> None:
    """List executions, the newest first."""
    target = find_target(is_local=local, lab=lab, region=region, profile=profile)
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


def stop(
    execution: ExecutionArgument,
    local: LocalOption = False,
    lab: LabOption = DEFAULT_LAB,
    region: RegionOption = None,
    profile: ProfileOption = None,
) -> None:
    """Stop an execution, wait until its training jobs are stopped, and say what was spent."""
    target = find_target(is_local=local, lab=lab, region=region, profile=profile)
    found = target.executions.describe(execution)
    if not found.is_running:
        tell(f"{execution} has ended already ({found.status.lower()})")
    else:
        target.executions.stop(execution, reason="traindyno stop")
        tell(f"stopping {execution}")
    _await_jobs(target, execution)
    tell(f"{execution} is stopped and none of its training jobs runs")
    for line in summary(target.receipt(execution)):
        tell(line)
    tell(f"each of them: traindyno receipt {execution}{target.option}")


def finish(target: Target, ended: Execution, output: Format, folder: Path) -> None:
    """Print what an execution came to and leave with the fitting exit status."""
    if ended.status in UNSUCCESSFUL:
        tell(f"{ended.execution_id}: {ended.status.lower()}{f': {ended.error}' if ended.error else ''}")
        if ended.cause:
            tell(ended.cause)
        raise typer.Exit(REFUSED if ended.error in REFUSALS else FAILED)
    document = target.results.find_json(report_data_key(ended.execution_id))
    if document is None:
        raise ReportMissing(f"{ended.execution_id} ({ended.status.lower()}) has no report yet; see: traindyno watch")
    path = folder / f"{ended.execution_id}.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(target.results.read(report_html_key(ended.execution_id)))
    if output is Format.JSON:
        print_json(document)
    else:
        print_verdict(STANDARD_OUTPUT, parse_report(document))
    tell(f"report: {path.resolve()}")


def _await_jobs(target: Target, execution: str) -> None:
    deadline = time.monotonic() + STOP_SECONDS
    while names := [row.job_name for row in target.attempts.list_open(execution)]:
        if time.monotonic() > deadline:
            raise JobsStillRunning(
                f"after {STOP_SECONDS:.0f} s these training jobs have not ended: {', '.join(names)}; "
                "the lab's sweep goes on trying"
            )
        time.sleep(1)


def _list_row(target: Target, found: Execution) -> dict[str, Any]:
    suite = target.suites.read(found.execution_id) or {}
    count = suite.get("run_count")
    return {
        "execution_id": found.execution_id,
        "status": found.status,
        "started_at": _time_text(found.started_at),
        "ended_at": None if found.ended_at is None else _time_text(found.ended_at),
        "run_count": None if count is None else int(count),
        "headline": suite.get("headline"),
        "error": found.error,
    }


def _time_text(epoch_seconds: float) -> str:
    return datetime.fromtimestamp(epoch_seconds, UTC).isoformat(timespec="seconds")
