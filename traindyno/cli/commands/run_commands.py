"""`traindyno run`, `watch` and `report`: start a suite, follow it to its end, show its verdict."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import typer
from botocore.exceptions import ClientError

from traindyno.api.lab_target import LabTarget
from traindyno.api.plans import file_lines, start_suite
from traindyno.api.progress import CloudUnreachable, Display, follow
from traindyno.api.reports import ExecutionFailed, FoundReport, read_report, write_report
from traindyno.api.suite_loading import load_startable_suite
from traindyno.aws.executions import EXECUTION_NAME_RULE, Execution
from traindyno.cli.client import clients_of
from traindyno.cli.display.progress import display_on
from traindyno.cli.display.receipt_table import print_receipt
from traindyno.cli.display.verdict_table import print_verdict
from traindyno.cli.inputs.execution_receipt import read_receipt
from traindyno.cli.inputs.plan_options import AlsoSendOption
from traindyno.cli.lab_choice import (
    DEFAULT_FOLDER,
    ExecutionArgument,
    FolderOption,
    FormatOption,
    LabChoice,
    SuiteArgument,
    with_options_of,
)
from traindyno.cli.option_rules import refuse
from traindyno.cli.option_values import execution_name, new_execution_name
from traindyno.cli.output import STANDARD_ERROR, STANDARD_OUTPUT, OutputFormat, print_json, tell
from traindyno.core.costs.quantity_text import counted, usd_text
from traindyno.core.documents.stored import to_document
from traindyno.core.instances.instance_types import LOCAL_PREFIX
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.serving.servable import KEEPS_NO_MODEL, why_not_servable
from traindyno.core.suite.suite import Suite
from traindyno.core.verdict.cell_runs import is_measured
from traindyno.core.verdict.report_data import report_document
from traindyno.lab.feature import Feature
from traindyno.travelling_files import allowed_paths

FAILED = 1
REFUSED = 2
NOTHING_MEASURED = 3
INTERRUPTED = 130


@with_options_of(
    LabChoice,
    refuse("folder", beside="wait", why="the report is written when the execution has ended"),
)
def run(
    choice: LabChoice,
    suite: SuiteArgument,
    name: Annotated[
        str | None,
        typer.Option(
            help=f"The execution's name, {EXECUTION_NAME_RULE}; by default the suite's name and "
            "the time.",
            callback=new_execution_name,
        ),
    ] = None,
    continues: Annotated[
        str | None,
        typer.Option(
            "--continue",
            metavar="EXECUTION",
            help="Continue an execution of the same suite that failed, was stopped or reached a "
            "limit: its results and its spending count, under the suite file's limits.",
            callback=execution_name,
        ),
    ] = None,
    wait: Annotated[
        bool,
        typer.Option("--wait/--no-wait", help="Follow the execution to its end, or only start it."),
    ] = True,
    also_send: AlsoSendOption = None,
    output: FormatOption = OutputFormat.TABLE,
    folder: FolderOption = DEFAULT_FOLDER,
) -> None:
    """Run a suite: start its execution, follow it to its end, print the verdict and download the
    HTML report.

    Ctrl-C ends the command only; the execution continues, and `traindyno watch` follows it again.
    """
    loaded = load_startable_suite(suite, local=choice.local)
    allowed = allowed_paths(also_send or ())
    for line in loaded.lines:
        tell(line)
    files = tuple(file_lines(loaded, allowed))
    target = choice.find_target()
    execution_id = start_suite(
        loaded, target, files=files, name=name, allowed=allowed, say=tell, continues=continues
    )
    for line in start_lines(loaded.suite, execution_id, target.option):
        tell(line)
    if wait:
        finish(target, follow_to_end(target, execution_id), output, folder)
    elif output is OutputFormat.JSON:
        print_json({"execution_id": execution_id})


@with_options_of(LabChoice)
def watch(
    choice: LabChoice,
    execution: ExecutionArgument,
    output: FormatOption = OutputFormat.TABLE,
    folder: FolderOption = DEFAULT_FOLDER,
) -> None:
    """Follow an execution to its end, then print its verdict and download its report; of a
    training, its model card.
    """
    target = choice.find_target()
    clients = clients_of(target.features)
    if not any(client.follow(target, execution, folder) for client in clients):
        finish(target, follow_to_end(target, execution), output, folder)


def start_lines(suite: Suite, execution_id: str, option: str) -> Iterator[str]:
    """Lines that ``run`` prints after the start.

    ``option`` names the lab in the commands that the lines propose.
    """
    yield f"started {execution_id}; stop it with: traindyno stop {execution_id}{option}"
    reason = why_not_servable(suite)
    if reason is not None:
        trained = f"; or train its winner with: traindyno train {execution_id}{option}"
        yield (
            f"this execution will have no model to deploy: {reason}"
            f"{trained * (reason == KEEPS_NO_MODEL)}"
        )


@with_options_of(LabChoice, refuse("folder", beside="receipt", why="it writes no report"))
def report(
    choice: LabChoice,
    execution: ExecutionArgument,
    receipt: Annotated[
        bool,
        typer.Option(
            "--receipt",
            help="Print the cost of every training job instead, also while the execution runs.",
        ),
    ] = False,
    output: FormatOption = OutputFormat.TABLE,
    folder: FolderOption = DEFAULT_FOLDER,
) -> None:
    """Print the verdict of an execution that has ended, and download its HTML report; or print its
    receipt.

    After a stop or a failure, the verdict is of the runs that were measured until then.
    """
    target = choice.find_target()
    if receipt:
        paid = read_receipt(target, execution)
        if output is OutputFormat.JSON:
            print_json(to_document(paid))
        else:
            print_receipt(STANDARD_OUTPUT, paid)
        return
    ended = target.describe(execution)
    if folder != DEFAULT_FOLDER:
        for client in clients_of(target.features):
            client.leave(target, execution, folder)
    finish(target, ended, output, folder)


def follow_to_end(target: LabTarget, execution: str, display: Display | None = None) -> Execution:
    """Follow an execution to its end.

    After Ctrl-C or SIGTERM it prints what continues and how to stop it; after a second one it ends
    immediately.
    """
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    where = f"{execution}{target.option}"
    try:
        return follow(target, execution, display or display_on(STANDARD_ERROR))
    except KeyboardInterrupt:
        with suppress(KeyboardInterrupt):
            running = [
                row for row in target.services.attempts.list_open(execution) if row.end is None
            ]
            usd_per_hour = sum(
                (row.usd_per_hour * row.instance_count for row in running), Decimal(0)
            )
            cost = (
                "" if target.is_local or not running else f" at {usd_text(usd_per_hour)} per hour"
            )
            tell(
                f"interrupted: {execution} continues, {counted(len(running), 'training job')} "
                f"running{cost}; watch it: traindyno watch {where}; stop it: traindyno stop "
                f"{where}"
            )
        raise typer.Exit(INTERRUPTED) from None
    except (CloudUnreachable, ClientError):
        if not target.is_local:
            tell(
                f"this ends the command only, not {execution}; watch it again: traindyno watch "
                f"{where}"
            )
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def finish(target: LabTarget, ended: Execution, output: OutputFormat, folder: Path) -> None:
    """Print the result of an execution and exit with its status."""
    try:
        stored = read_report(target, ended)
    except ExecutionFailed as failed:
        for line in failed.lines:
            tell(line)
        raise typer.Exit(REFUSED if failed.is_refusal else FAILED) from None
    show_report(stored, target.features, output, folder)
    is_limited = any(result.outcome is Outcome.COST_STOPPED for result in stored.report.results)
    if stored.why_incomplete or is_limited:
        tell(rest_text(target, ended.execution_id))
    if target.is_local:
        keep_repeats(stored)
    if stored.why_incomplete:
        raise typer.Exit(FAILED)
    if not any(map(is_measured, stored.report.results)):
        tell(f"no run of {len(stored.report.results)} was measured")
        raise typer.Exit(NOTHING_MEASURED)


def rest_text(target: LabTarget, execution_id: str) -> str:
    return f"to measure the rest: traindyno run SUITE --continue {execution_id}{target.option}"


def keep_repeats(stored: FoundReport) -> None:
    """What this machine's next suites assume of single runs, of runs that were long enough."""
    from localcloud.home import Home  # noqa: PLC0415  # the wheel lacks it
    from localcloud.run_repeats import LEAST_SECONDS, keep  # noqa: PLC0415

    rates: dict[str, list[float]] = {}
    for result in stored.report.results:
        cell = result.run.cell
        rate = result.samples_per_second
        is_here = cell.settings.instance.startswith(LOCAL_PREFIX) and not result.is_simulated
        steady_seconds = result.measured.steady_seconds if result.measured else 0.0
        if is_here and rate is not None and steady_seconds >= LEAST_SECONDS:
            rates.setdefault(cell.cell_id, []).append(rate)
    keep(Home.from_environment(), stored.report.execution_id, rates.values())


def show_report(
    stored: FoundReport, features: Sequence[Feature], output: OutputFormat, folder: Path
) -> None:
    """Print the verdict and write the page.

    An execution that was stopped or failed has what it measured until then.
    """
    for line in stored.why_incomplete:
        tell(line)
    if output is OutputFormat.JSON:
        print_json(report_document(stored.report))
    else:
        print_verdict(STANDARD_OUTPUT, stored.report, features)
    tell(f"report: {write_report(folder, stored.report.execution_id, stored.html)}")
