"""`traindyno list` and `stop`: a lab's executions, and the early end of one."""

import re
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.table import Table

from traindyno.api.execution_state import read_waits
from traindyno.api.lab_target import LabTarget
from traindyno.api.progress import STOP_SECONDS
from traindyno.api.reports import ExecutionFailed, ReportMissing, read_report
from traindyno.aws.executions import UNSUCCESSFUL
from traindyno.cli.commands.projected_list import list_projected
from traindyno.cli.commands.run_commands import rest_text, show_report
from traindyno.cli.display.receipt_table import summary
from traindyno.cli.inputs.execution_receipt import read_receipt
from traindyno.cli.lab_choice import (
    DEFAULT_FOLDER,
    ExecutionArgument,
    FolderOption,
    FormatOption,
    LabChoice,
    with_options_of,
)
from traindyno.cli.output import (
    STANDARD_OUTPUT,
    OutputFormat,
    print_json,
    tell,
)
from traindyno.core.costs.quantity_text import (
    UNKNOWN,
)
from traindyno.core.errors import TraindynoError
from traindyno.lab.judge_suite import judgement_of

SECONDS_BETWEEN_LINES = 60.0


class JobsStillRunning(TraindynoError):
    """Training jobs of a stopped execution did not end in time."""


@with_options_of(LabChoice)
def list_executions(
    choice: LabChoice,
    output: FormatOption = OutputFormat.TABLE,
    limit: Annotated[int, typer.Option(min=1, help="How many, the newest first.")] = 20,
    projected: Annotated[
        bool,
        typer.Option(
            "--projected",
            help="List only projected ones, with their actual time, cost and memory.",
        ),
    ] = False,
) -> None:
    """List executions, the newest first."""
    target = choice.find_target()
    if projected:
        list_projected(target, limit, output)
        return
    listed: list[dict[str, Any]] = []
    for latest in target.executions.list_latest(limit):
        row = target.services.executions.find(latest.execution_id)
        judgement = row.judgement if row else None
        has_reason = latest.status in UNSUCCESSFUL and judgement is None
        # a list has no reasons
        execution = target.executions.describe(latest.execution_id) if has_reason else latest
        waits = read_waits(target, execution.execution_id) if execution.is_running else []
        listed.append(
            {
                "execution_id": execution.execution_id,
                "status": execution.status,
                "started_at": _time_text(execution.started_at),
                "ended_at": None if execution.ended_at is None else _time_text(execution.ended_at),
                "run_count": row.run_count if row else None,
                "ended_run_count": judgement.run_count if judgement else None,
                "headline": judgement.headline if judgement else None,
                "error": execution.error,
                "cause": execution.cause,
                "waits_for": waits[0] if waits else None,
            }
        )
    if output is OutputFormat.JSON:
        print_json(listed)
        return
    table = Table("execution", "status", "started", "runs", "outcome", pad_edge=False)
    for line in listed:
        started = line["started_at"].replace("T", " ")[:19]
        ended = line["ended_run_count"]
        most = line["run_count"]
        runs = (
            UNKNOWN
            if most is None
            else str(most)
            if ended in (None, most)
            else f"{ended} of {most}"
        )
        why = ": ".join(filter(None, (line["error"], line["cause"])))
        outcome = short_finding(line["headline"] or "") or why or line["waits_for"] or ""
        table.add_row(line["execution_id"], line["status"].lower(), started, runs, outcome)
    STANDARD_OUTPUT.print(table)


def short_finding(headline: str) -> str:
    """A headline without its reasons: ``Use fsdp``, or that two cells can't be told apart yet."""
    return re.split(r"[:;.] | \(|\.$", headline)[0]


@with_options_of(LabChoice)
def stop(
    choice: LabChoice,
    execution: ExecutionArgument,
    folder: FolderOption = DEFAULT_FOLDER,
) -> None:
    """Stop an execution, wait until its training jobs are stopped, print its cost and the verdict
    of what it measured.

    The HTML report of the measured runs is written as well.
    """
    target = choice.find_target()
    described = target.describe(execution)
    if not described.is_running:
        tell(f"{execution} has ended already ({described.status.lower()})")
    else:
        receipt = f"traindyno report {execution} --receipt{target.option}"
        # First: a task of the execution may go on after its end, and SubmitRun would start its job.
        target.services.executions.mark_stopping(execution)
        target.executions.stop(
            execution, reason=f"a person stopped it with traindyno stop; its cost: {receipt}"
        )
        tell(f"stopping {execution}: it starts no further training job")
    await_jobs(target, execution)
    tell(
        f"{execution} {'is stopped' if described.is_running else 'has ended'}; all its training "
        f"jobs "
        "have ended"
    )
    for line in summary(read_receipt(target, execution)):
        tell(line)
    tell(f"to list each job: traindyno report {execution} --receipt{target.option}")
    tell(rest_text(target, execution))
    with suppress(
        ExecutionFailed, ReportMissing
    ):  # it measured nothing, or Step Functions is still ending it
        report = read_report(target, target.describe(execution))
        target.services.executions.judge(execution, judgement_of(report.report))
        show_report(report, target.features, OutputFormat.TABLE, folder)


def await_jobs(
    target: LabTarget,
    execution: str,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait for the jobs, and name them each minute."""
    began = told_at = clock()
    while names := [row.job_name for row in target.services.attempts.list_open(execution)]:
        listed = f"{len(names)} training job{'s' if names[1:] else ''}: {', '.join(names)}"
        ended = target.find_ended()
        if clock() - began > STOP_SECONDS or ended:
            reason = ended or f"they have not ended after {STOP_SECONDS:.0f} s"
            when = ", once that is there again," if ended else ""
            raise JobsStillRunning(
                f"{execution} is stopped and starts no further training job; it waited for the end "
                f"of {listed}; {reason}; the lab's ReconcileRuns function{when} stops and settles "
                "them"
            )
        if clock() - told_at >= SECONDS_BETWEEN_LINES:
            told_at = clock()
            tell(f"waiting for the end of {listed}")
        sleep(1)


def _time_text(epoch_seconds: float) -> str:
    return datetime.fromtimestamp(epoch_seconds, UTC).isoformat(timespec="seconds")
