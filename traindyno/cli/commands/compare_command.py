"""`traindyno compare`: two executions of the same work beside each other, and a gate on the
change.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

import typer

from traindyno.cli.completion import complete_execution
from traindyno.cli.lab_choice import LabChoice, with_options_of
from traindyno.cli.option_values import execution_name, share
from traindyno.cli.output import (
    SIMULATED,
    STANDARD_OUTPUT,
    Terminal,
    TextFormat,
    markdown_table,
    print_json,
    print_text,
    tell,
    titled_table,
)
from traindyno.core.costs.quantity_text import (
    UNKNOWN,
    change_interval_text,
    change_text,
    counted,
    estimate_text,
    joined,
    number_text,
    tolerance_text,
    usd_text,
)
from traindyno.core.documents.places import markdown_line, markdown_text
from traindyno.core.documents.stored import to_document
from traindyno.core.measurement.loss_parity import ParityFinding
from traindyno.core.verdict.comparison import (
    CellChange,
    Change,
    ExecutionComparison,
    NotComparable,
    compare_executions,
)
from traindyno.core.verdict.conditions import Difference
from traindyno.core.verdict.gate import DEARER, Gate, GatedFigure, GateFinding, check_gate
from traindyno.figures.estimates import Comparison, Estimate
from traindyno.store.results import load_record

WORSE = 1
OPEN = 3
STATUS = {GateFinding.HOLDS: 0, GateFinding.WORSE: WORSE, GateFinding.OPEN: OPEN}
COLUMNS = ("cell", "samples/s", "change", "cost", "change", "finding")
EXPLANATION = "± and brackets: 95 % intervals; change: the second ÷ the first"


@with_options_of(LabChoice)
def compare(
    choice: LabChoice,
    first: Annotated[
        str,
        typer.Argument(
            help="The execution to compare with.",
            callback=execution_name,
            autocompletion=complete_execution,
        ),
    ],
    second: Annotated[
        str,
        typer.Argument(
            help="The execution that may have become better or worse.",
            callback=execution_name,
            autocompletion=complete_execution,
        ),
    ],
    tolerance: Annotated[
        str | None,
        typer.Option(
            help="By which share time and cost may rise, such as '3 %'. The exit status says "
            "whether they did.",
            callback=share,
        ),
    ] = None,
    output: Annotated[
        TextFormat,
        typer.Option("--format", help="A table to read, one JSON document, or Markdown."),
    ] = TextFormat.TABLE,
) -> None:
    """Compare the cells that two executions share, and list other differences.

    Exit status with --tolerance: 0 if no cell is slower or dearer by more than it, 1 if one is, 3
    if the trials can't tell. Exit status 3 also if the executions measured different work.
    """
    target = choice.find_target()
    for execution in (first, second):
        target.require_execution(execution)
    try:
        compared = compare_executions(
            *(load_record(target.results, execution) for execution in (first, second))
        )
    except NotComparable as error:
        tell(str(error))
        raise typer.Exit(OPEN) from None
    gate = None if tolerance is None else check_gate(compared, float(tolerance))
    match output:
        case TextFormat.JSON:
            document: Any = to_document(compared)
            print_json(document if gate is None else {**document, "gate": to_document(gate)})
        case TextFormat.MARKDOWN:
            print_text(markdown(compared, gate))
        case TextFormat.TABLE:
            print_comparison(STANDARD_OUTPUT, compared)
            for line in gate_lines(gate):
                STANDARD_OUTPUT.print(line)
    if gate is not None:
        raise typer.Exit(STATUS[gate.finding])


def print_comparison(console: Terminal, compared: ExecutionComparison) -> None:
    if compared.is_simulated:
        console.print(SIMULATED)
    figures = [f">{name}" for name in COLUMNS[1:-1]]
    table = titled_table(_title(compared), "cell~", *figures, COLUMNS[-1])
    for cell in compared.cells:
        table.add_row(*_row(cell))
    console.print(table)
    for title, differences in _differences(compared):
        table = titled_table(title, "~", f"{compared.first_id}~", f"{compared.second_id}~")
        for difference in differences:
            table.add_row(difference.name, difference.first, difference.second)
        console.print()
        console.print(table)
    console.print()
    for line in _notes(compared):
        console.print(line)


def markdown(compared: ExecutionComparison, gate: Gate | None) -> str:
    """The comparison as Markdown, for a comment on a pull request or a job's summary."""
    lines = [f"**{markdown_text(_title(compared))}**", ""]
    for line in gate_lines(gate):
        lines += [markdown_line(line), ""]
    lines += markdown_table(COLUMNS, [_row(cell) for cell in compared.cells])
    for title, differences in _differences(compared):
        rows = [
            [difference.name, difference.first, difference.second] for difference in differences
        ]
        lines += ["", *markdown_table([title, compared.first_id, compared.second_id], rows)]
    return "\n".join([*lines, "", *(f"- {markdown_line(line)}" for line in _notes(compared)), ""])


def gate_lines(gate: Gate | None) -> Iterator[str]:
    if gate is None:
        return
    tolerance = tolerance_text(gate.tolerance)
    match gate.finding:
        case GateFinding.HOLDS:
            yield f"Passed: no cell is {' or '.join(gate.worse)} by more than {tolerance}."
        case GateFinding.WORSE:
            yield f"Failed: {_list(gate.of(GateFinding.WORSE), tolerance)}."
        case GateFinding.OPEN:
            yield f"Open: the trials can't tell whether a change exceeds {tolerance}."
    for figure in gate.of(GateFinding.OPEN):
        yield _open_text(figure)
    priced = [figure.label for figure in gate.figures if figure.worse == DEARER]
    timed = [figure.label for figure in gate.figures if figure.comparison]
    unpriced = [label for label in timed if label not in priced]
    if unpriced:
        of_cells = f" of {joined(unpriced)}" if priced else ""
        yield f"Cost{of_cells} is not judged: a price is unknown."
    if gate.dropped:
        names = "; ".join(gate.dropped)
        yield f"Not judged, since the baseline's race did not run them again: {names}."


def _list(figures: Sequence[GatedFigure], tolerance: str) -> str:
    named = [
        f"{figure.label} is {figure.worse} by {_change(figure.comparison)}" for figure in figures
    ]
    return f"{joined(named)}, more than {tolerance}"


def _open_text(figure: GatedFigure) -> str:
    what = f"{figure.label}, {figure.worse} or not"
    if figure.reason is not None:
        return f"{what}: {figure.reason}."
    if figure.jobs is None:
        return f"{what}: {_change(figure.comparison)}; no number of jobs decides."
    return (
        f"{what}: {_change(figure.comparison)}; {counted(figure.jobs, 'job')} of each execution "
        "would decide."
    )


def _title(compared: ExecutionComparison) -> str:
    return f"{compared.first_id} → {compared.second_id}: {compared.examples:,} examples"


def _row(cell: CellChange) -> list[str]:
    finding = cell.change.value.replace("_", " ")
    if cell.parity is not None and cell.parity.finding is ParityFinding.DIFFERS:
        finding += "; losses differ, so the work is not the same"
    sides = (cell.first, cell.second)
    return [
        cell.label,
        " → ".join(_estimate(side.samples_per_second, number_text) for side in sides),
        _change(cell.rate),
        " → ".join(_estimate(side.usd, usd_text) for side in sides),
        _change(cell.usd),
        finding,
    ]


def _differences(compared: ExecutionComparison) -> list[tuple[str, tuple[Difference, ...]]]:
    tables = [
        ("differences in suite and settings", compared.running),
        ("differences in environment and price", compared.environment),
    ]
    return [(title, differences) for title, differences in tables if differences]


def _notes(compared: ExecutionComparison) -> Iterator[str]:
    yield EXPLANATION
    changed = [cell for cell in compared.cells if cell.change in (Change.FASTER, Change.SLOWER)]
    yield f"{len(changed)} of {len(compared.cells)} shared cells changed detectably"
    for execution, labels in (
        (compared.first_id, compared.only_first),
        (compared.second_id, compared.only_second),
    ):
        if labels:
            yield f"only in {execution}: {'; '.join(labels)}"
    if compared.running or compared.environment:
        yield "each difference is a possible cause of a change; this comparison can't separate them"
    else:
        yield "no other recorded difference"


def _estimate(estimate: Estimate | None, text: Callable[[float], str]) -> str:
    if estimate is None or estimate.interval is None:
        return UNKNOWN if estimate is None else text(estimate.mean)
    return estimate_text(estimate.mean, estimate.interval.low, estimate.interval.high, text)


def _change(comparison: Comparison | None) -> str:
    if comparison is None:
        return UNKNOWN
    if comparison.interval is None:
        return f"{change_text(comparison.ratio)} (one trial)"
    interval = comparison.interval
    return change_interval_text(comparison.ratio, interval.low, interval.high)
