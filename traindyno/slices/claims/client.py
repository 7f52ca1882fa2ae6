"""`traindyno claims`: published figures against what an execution measured."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from traindyno.api.suite_text import read_input_file
from traindyno.cli.client import Client
from traindyno.cli.lab_choice import FormatOption, LabChoice, with_options_of
from traindyno.cli.option_rules import need
from traindyno.cli.option_values import execution_name
from traindyno.cli.output import STANDARD_OUTPUT, OutputFormat, print_json, styled, titled_table
from traindyno.core.costs.quantity_text import counted, number_text, range_text
from traindyno.core.documents.stored import to_document
from traindyno.core.errors import TraindynoError
from traindyno.core.s3_keys import report_data_key
from traindyno.core.verdict.cell_runs import group_runs
from traindyno.core.verdict.report_data import parse_report
from traindyno.slices.claims.lab import ClaimFinding, ClaimJudgement, judge_claims
from traindyno.slices.claims.suite import CLAIMS_SHAPE, Claims, parse_claims

STYLES = {
    ClaimFinding.REPRODUCED: "green",
    ClaimFinding.PLAYED: "cyan",
    ClaimFinding.NOT_REPRODUCED: "red",
    ClaimFinding.INCONSISTENT: "red",
    ClaimFinding.UNDECIDED: "yellow",
}


class NothingMeasured(TraindynoError):
    """The execution has no report to check claims against."""


@with_options_of(
    LabChoice,
    need(
        "local",
        "lab",
        "region",
        "profile",
        option="execution",
        why="without an execution no measurement is compared, and no lab is read",
    ),
)
def claims(
    choice: LabChoice,
    file: Annotated[
        Path, typer.Argument(help="A claims file, such as suites/bert-trainium/claims.yaml.")
    ],
    execution: Annotated[
        str | None,
        typer.Argument(
            help="An execution with measurements; without it, only the file is checked.",
            callback=execution_name,
        ),
    ] = None,
    output: FormatOption = OutputFormat.TABLE,
) -> None:
    """List published figures and what contradicts them, and compare them with what an execution
    measured.
    """
    source = read_input_file(file, parse_claims, fields=CLAIMS_SHAPE)
    if execution is None:
        judgements = judge_claims(source, (), ())
    else:
        target = choice.find_target()
        target.require_execution(execution)
        report = target.results.find_as(report_data_key(execution), parse_report)
        if report is None:
            raise NothingMeasured(f"{execution} has no report; see: traindyno list")
        judgements = judge_claims(
            source, group_runs(report.suite, report.cells, report.results), report.results
        )
    if output is OutputFormat.JSON:
        print_json([to_document(judgement) for judgement in judgements])
    else:
        STANDARD_OUTPUT.print(_table(source, judgements))
        for line in summary_lines(judgements, len(source.statements)):
            STANDARD_OUTPUT.print(line)


def _table(source: Claims, judgements: tuple[ClaimJudgement, ...]) -> Table:
    table = titled_table(source.title, "claim~", ">published~", ">measured~", "finding~", "why~")
    for judgement in judgements:
        finding = styled(
            judgement.finding.value.replace("_", " "), STYLES.get(judgement.finding, "")
        )
        measured = "unknown"
        trials = judgement.measured
        if trials is not None:
            reach = trials.interval
            spread = (
                f" ({range_text(number_text(reach.low), number_text(reach.high))})" if reach else ""
            )
            measured = f"{number_text(trials.mean, digits=4)}{spread}"
        table.add_row(
            judgement.claim.text,
            number_text(judgement.claim.published, digits=4),
            measured,
            finding,
            judgement.reason,
        )
    return table


def summary_lines(judgements: Sequence[ClaimJudgement], statements: int = 0) -> Iterator[str]:
    """Which claims contradict the author's other figures, and the number of each finding."""
    stated = {
        judgement.claim.claim_id: judgement.claim.contradiction.text
        for judgement in judgements
        if judgement.claim.contradiction
    }
    named = {name: text.partition("; contradicts ")[2].split(", ") for name, text in stated.items()}
    # One fact: the same calculation in several sentences, or one mismatch as each of its figures
    # shows it.
    facts = {
        frozenset((name, *others))
        if any(name in identifiers for identifiers in named.values())
        else stated[name]
        for name, others in named.items()
    }
    yield f"{len(judgements)} claims; contradictions of the source's figures: {len(facts)}"
    if stated:
        yield f"in {counted(len(stated), 'claim')}: {', '.join(stated)}"
    findings = Counter(judgement.finding.value.replace("_", " ") for judgement in judgements)
    yield (
        "findings: "
        f"{', '.join(f'{count} {finding}' for finding, count in sorted(findings.items()))}"
    )
    if statements:
        yield (
            "statements of another form than a number, such as versions, which are not judged: "
            f"{statements}"
        )


def client() -> Client:
    return Client(commands={"claims": (claims, "suites/bert-trainium/claims.yaml first --local")})
