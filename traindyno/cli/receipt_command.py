"""`traindyno receipt`: what an execution paid, attempt by attempt and phase by phase."""

from traindyno.cli.execution_commands import ExecutionArgument, FormatOption
from traindyno.cli.output import STANDARD_OUTPUT, Format, print_json
from traindyno.cli.receipt_table import print_receipt
from traindyno.cli.target import LabOption, LocalOption, ProfileOption, RegionOption, find_target
from traindyno.core.documents.stored import to_document
from traindyno.core.lab_names import DEFAULT_LAB


def receipt(
    execution: ExecutionArgument,
    local: LocalOption = False,
    lab: LabOption = DEFAULT_LAB,
    region: RegionOption = None,
    profile: ProfileOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show every training job that was paid for: billed seconds × instances × price, adding up to the cent."""
    found = find_target(is_local=local, lab=lab, region=region, profile=profile).receipt(execution)
    if output is Format.JSON:
        print_json(to_document(found))
    else:
        print_receipt(STANDARD_OUTPUT, found)
