"""`traindyno list`, `stop` and `compare`: a lab's executions, the early end of one, and two beside
each other.
"""

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
from traindyno.cli.option_values import execution_name
from traindyno.cli.output import (
    SIMULATED,
    STANDARD_OUTPUT,
    OutputFormat,
    Terminal,
    print_json,
    tell,
    titled_table,
)
from traindyno.core.costs.quantity_text import (
    UNKNOWN,
    change_text,
    estimate_text,
    number_text,
    range_text,
    usd_text,
)
from traindyno.core.documents.stored import to_document
from traindyno.core.errors import TraindynoError
from traindyno.core.measurement.loss_parity import ParityFinding
from traindyno.core.statistics.estimates import Comparison, Estimate
from traindyno.core.verdict.comparison import Change, ExecutionComparison, compare_executions
from traindyno.lab.judge_suite import judgement_of
from traindyno.store.results import load_record

SECONDS_BETWEEN_LINES = 60.0


@with_options_of(LabChoice)
def compare(
    choice: LabChoice,
    first: Annotated[
        str, typer.Argument(help="The execution to compare with.", callback=execution_name)
    ],
    second: Annotated[
        str,
        typer.Argument(
            help="The execution that may have become better or worse.", callback=execution_name
        ),
    ],
    output: FormatOption = OutputFormat.TABLE,
) -> None:
    """Compare the cells that two executions share, and list other differences.

    Exit status 2 if the executions measured different work.
    """
    target = choice.find_target()
    for execution in (first, second):
        target.require_execution(execution)
    compared = compare_executions(
        *(load_record(target.results, execution) for execution in (first, second))
    )
    if output is OutputFormat.JSON:
        print_json(to_document(compared))
    else:
        print_comparison(STANDARD_OUTPUT, compared)


def print_comparison(console: Terminal, compared: ExecutionComparison) -> None:
    if compared.is_simulated:
        console.print(SIMULATED)
    title = f"{compared.first_id} → {compared.second_id}: {compared.examples:,} examples"
    table = titled_table(title, "cell~", ">samples/s", ">change", ">cost", ">change", "finding")
    for cell in compared.cells:
        finding = cell.change.value.replace("_", " ")
        if cell.parity is not None and cell.parity.finding is ParityFinding.DIFFERS:
            finding += "; losses differ, so the work is not the same"
        table.add_row(
            cell.label,
            " → ".join(
                _estimate(each.samples_per_second, number_text)
                for each in (cell.first, cell.second)
            ),
            _change(cell.rate),
            " → ".join(_estimate(each.usd, usd_text) for each in (cell.first, cell.second)),
            _change(cell.usd),
            finding,
        )
    console.print(table)
    for title, differences in (
        ("differences in suite and settings", compared.running),
        ("differences in environment and price", compared.environment),
    ):
        if differences:
            table = titled_table(title, "~", f"{compared.first_id}~", f"{compared.second_id}~")
            for each in differences:
                table.add_row(each.name, each.first, each.second)
            console.print()
            console.print(table)
    console.print()
    console.print("± and brackets: 95 % intervals; change: the second ÷ the first")
    changed = [cell for cell in compared.cells if cell.change in (Change.FASTER, Change.SLOWER)]
    console.print(f"{len(changed)} of {len(compared.cells)} shared cells changed detectably")
    for execution, labels in (
        (compared.first_id, compared.only_first),
        (compared.second_id, compared.only_second),
    ):
        if labels:
            console.print(f"only in {execution}: {'; '.join(labels)}")
    if compared.running or compared.environment:
        console.print(
            "each difference is a possible cause of a change; this comparison can't separate them"
        )
    else:
        console.print("no other recorded difference")


def _estimate(found: Estimate | None, text: Callable[[float], str]) -> str:
    if found is None or found.interval is None:
        return UNKNOWN if found is None else text(found.mean)
    return estimate_text(found.mean, found.interval.low, found.interval.high, text)


def _change(found: Comparison | None) -> str:
    if found is None:
        return UNKNOWN
    if found.interval is None:
        return f"{change_text(found.ratio)} (one trial)"
    reach = range_text(
        change_text(found.interval.low).removesuffix(" %"), change_text(found.interval.high)
    )
    return f"{change_text(found.ratio)} ({reach})"


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
            help="Of those that were projected, list what came of it: time, cost and memory.",
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
        found = target.executions.describe(latest.execution_id) if has_reason else latest
        waits = read_waits(target, found.execution_id) if found.is_running else []
        listed.append(
            {
                "execution_id": found.execution_id,
                "status": found.status,
                "started_at": _time_text(found.started_at),
                "ended_at": None if found.ended_at is None else _time_text(found.ended_at),
                "run_count": row.run_count if row else None,
                "ended_run_count": judgement.run_count if judgement else None,
                "headline": judgement.headline if judgement else None,
                "error": found.error,
                "cause": found.cause,
                "waits_for": waits[0] if waits else None,
            }
        )
    if output is OutputFormat.JSON:
        print_json(listed)
        return
    table = Table("execution", "status", "started", "runs", "outcome", pad_edge=False)
    for each in listed:
        started = each["started_at"].replace("T", " ")[:19]
        ended = each["ended_run_count"]
        most = each["run_count"]
        runs = (
            UNKNOWN
            if most is None
            else str(most)
            if ended in (None, most)
            else f"{ended} of {most}"
        )
        why = ": ".join(filter(None, (each["error"], each["cause"])))
        outcome = short_finding(each["headline"] or "") or why or each["waits_for"] or ""
        table.add_row(each["execution_id"], each["status"].lower(), started, runs, outcome)
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
    found = target.describe(execution)
    if not found.is_running:
        tell(f"{execution} has ended already ({found.status.lower()})")
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
        f"{execution} {'is stopped' if found.is_running else 'has ended'}; all its training jobs "
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
        show_report(report, OutputFormat.TABLE, folder)


def await_jobs(
    target: LabTarget,
    execution: str,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Say each minute for which jobs it waits."""
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
