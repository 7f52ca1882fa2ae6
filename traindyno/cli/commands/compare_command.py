"""`traindyno compare`: two executions of the same work side by side."""

from collections.abc import Callable
from typing import Annotated

import typer

from traindyno.cli.lab_choice import FormatOption, LabChoice, with_options_of
from traindyno.cli.option_values import execution_name
from traindyno.cli.output import SIMULATED, STANDARD_OUTPUT, OutputFormat, Terminal, print_json, titled_table
from traindyno.core.costs.quantity_text import UNKNOWN, change_text, number_text, range_text, share_text, usd_text
from traindyno.core.documents.stored import to_document
from traindyno.core.measurement.loss_parity import ParityFinding
from traindyno.core.statistics.estimates import Comparison, Estimate
from traindyno.core.verdict.comparison import Change, ExecutionComparison, compare_executions
from traindyno.store.results import load_record


@with_options_of(LabChoice)
def compare(
    choice: LabChoice,
    first: Annotated[str, typer.Argument(help="The execution to compare with.", callback=execution_name)],
    second: Annotated[
        str, typer.Argument(help="The execution that may have become better or worse.", callback=execution_name)
    ],
    output: FormatOption = OutputFormat.TABLE,
) -> None:
    """Compare the cells that two executions share, and list other differences.

    Exit status 2 if the executions measured different work.
    """
    target = choice.find_target()
    for execution in (first, second):
        target.require_execution(execution)
    compared = compare_executions(*(load_record(target.results, execution) for execution in (first, second)))
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
            " → ".join(_estimate(each.samples_per_second, number_text) for each in (cell.first, cell.second)),
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
    for execution, labels in ((compared.first_id, compared.only_first), (compared.second_id, compared.only_second)):
        if labels:
            console.print(f"only in {execution}: {'; '.join(labels)}")
    if compared.running or compared.environment:
        console.print("each difference is a possible cause of a change; this comparison can't separate them")
    else:
        console.print("no other recorded difference")


def _estimate(found: Estimate | None, text: Callable[[float], str]) -> str:
    if found is None or found.interval is None:
        return UNKNOWN if found is None else text(found.mean)
    return f"{text(found.mean)} ± {share_text((found.interval.high - found.interval.low) / 2 / found.mean)}"


def _change(found: Comparison | None) -> str:
    if found is None:
        return UNKNOWN
    if found.interval is None:
        return f"{change_text(found.ratio)} (one trial)"
    reach = range_text(change_text(found.interval.low).removesuffix(" %"), change_text(found.interval.high))
    return f"{change_text(found.ratio)} ({reach})"
