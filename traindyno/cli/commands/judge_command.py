"""`traindyno judge`: a finding from a table of trials that ran anywhere."""

import os
from pathlib import Path
from typing import Annotated

import typer

from traindyno.api.finding_text import (
    HEADING,
    finding_lines,
    finding_rows,
    unknown_lines,
)
from traindyno.api.judging import Better, judge_table
from traindyno.api.trial_files import Row, log_columns, read_rows
from traindyno.api.trial_rows import TrialColumns, TrialsInvalid
from traindyno.cli.option_values import share
from traindyno.cli.output import (
    STANDARD_OUTPUT,
    TextFormat,
    markdown_table,
    print_json,
    print_text,
    titled_table,
)
from traindyno.core.documents.places import markdown_line
from traindyno.core.documents.stored import to_document
from traindyno.figures.judge import TrialsFinding


def judge(
    trials: Annotated[
        Path,
        typer.Argument(
            help="A table with a row for each trial (.csv, .tsv, .json, .jsonl, .parquet), or a "
            "folder of step logs: FOLDER/CELL/TRIAL/…/rank-*.jsonl."
        ),
    ],
    value: Annotated[
        str | None,
        typer.Option(help="The column with what was measured, such as seconds or usd."),
    ] = None,
    cell: Annotated[
        list[str] | None,
        typer.Option(
            help="The column that names the configuration; repeat it where several name it."
        ),
    ] = None,
    block: Annotated[
        str | None,
        typer.Option(help="The column of what trials of different cells share, such as a day."),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(help="The column of the machine; of several, names with spaces between."),
    ] = None,
    order: Annotated[
        str | None, typer.Option(help="The column of when a trial ran: numbers or dates.")
    ] = None,
    better: Annotated[
        Better | None,
        typer.Option(help="Whether less or greater is better; by default by the column's name."),
    ] = None,
    tolerance: Annotated[
        str,
        typer.Option(
            help="A cell that is worse by no more than this share is as good.", callback=share
        ),
    ] = "2 %",
    output: Annotated[
        TextFormat,
        typer.Option("--format", help="A table to read, one JSON document, or Markdown."),
    ] = TextFormat.TABLE,
) -> None:
    """Say which cell is best, and how sure that is, from trials that ran anywhere.

    Needs neither a suite nor an account.
    """
    rows = read_rows(trials)
    columns = _columns(trials, rows, value, cell or [], block, host, order)
    finding = judge_table(rows, columns, better=better, tolerance=float(tolerance))
    match output:
        case TextFormat.JSON:
            print_json(to_document(finding))
        case TextFormat.MARKDOWN:
            print_text(_markdown(finding, columns))
        case TextFormat.TABLE:
            _print_finding(finding, columns)


def _print_finding(finding: TrialsFinding, columns: TrialColumns) -> None:
    direction = Better.GREATER if finding.is_rate else Better.LESS
    figures = [f">{name}" for name in HEADING[1:-1]]
    title = f"{columns.value}, {direction.value} is better"
    table = titled_table(title, "cell~", *figures, HEADING[-1])
    for row in finding_rows(finding):
        table.add_row(*row)
    for line in finding_lines(finding):
        STANDARD_OUTPUT.print(line)
    STANDARD_OUTPUT.print(table)
    for line in unknown_lines(columns):
        STANDARD_OUTPUT.print(line)


def _markdown(finding: TrialsFinding, columns: TrialColumns) -> str:
    table = markdown_table(HEADING, finding_rows(finding))
    found = map(markdown_line, finding_lines(finding))
    notes = [f"- {markdown_line(line)}" for line in unknown_lines(columns)]
    return "\n".join(["\n\n".join(found), "", *table, "", *notes, ""])


def _columns(
    trials: Path,
    rows: list[Row],
    value: str | None,
    cell: list[str],
    block: str | None,
    host: str | None,
    order: str | None,
) -> TrialColumns:
    """Columns of the table as named, or as step logs have them."""
    if os.path.isdir(trials):  # noqa: PTH112  (Path.is_dir raises for a name that is too long)
        known = log_columns(rows)
        return TrialColumns(
            value=value or known.value,
            cell=tuple(cell) or known.cell,
            block=block,
            host=host or known.host,
            order=order or known.order,
        )
    missing = [name for name, given in (("--value", value), ("--cell", cell)) if not given]
    if missing or value is None:
        listed = ", ".join(dict.fromkeys(str(name) for row in rows for name in row))
        raise TrialsInvalid(
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing, expected a "
            f"column of {trials}: {listed}"
        )
    return TrialColumns(value=value, cell=tuple(cell), block=block, host=host, order=order)
