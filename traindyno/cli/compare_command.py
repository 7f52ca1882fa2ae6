"""`traindyno compare`: two executions of the same work side by side."""

from typing import Annotated

import typer

from traindyno.cli.compare_table import print_comparison
from traindyno.cli.execution_commands import FormatOption
from traindyno.cli.output import STANDARD_OUTPUT, Format, print_json
from traindyno.cli.target import LabOption, LocalOption, ProfileOption, RegionOption, find_target
from traindyno.core.documents.stored import to_document
from traindyno.core.lab_names import DEFAULT_LAB
from traindyno.core.verdict.comparison import compare_executions
from traindyno.store.execution_record import load_record


def compare(
    first: Annotated[str, typer.Argument(help="The execution to compare with.")],
    second: Annotated[str, typer.Argument(help="The execution that may have become better or worse.")],
    local: LocalOption = False,
    lab: LabOption = DEFAULT_LAB,
    region: RegionOption = None,
    profile: ProfileOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Compare the cells that two executions share, and name what else differs; exit status 2 for unlike work."""
    target = find_target(is_local=local, lab=lab, region=region, profile=profile)
    compared = compare_executions(*(load_record(target.results, execution) for execution in (first, second)))
    if output is Format.JSON:
        print_json(to_document(compared))
    else:
        print_comparison(STANDARD_OUTPUT, compared)
