"""`traindyno reprice`: an execution's costs and verdict at other prices, without running anything."""

import time
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from traindyno.aws import clients
from traindyno.aws.prices import read_prices
from traindyno.cli.execution_commands import ExecutionArgument, FormatOption
from traindyno.cli.output import STANDARD_OUTPUT, Format, print_json
from traindyno.cli.plan_inputs import PricesOption, read_price_file
from traindyno.cli.reprice_table import print_repriced
from traindyno.cli.target import LabOption, LocalOption, ProfileOption, find_target
from traindyno.core.costs.prices import Price
from traindyno.core.documents.stored import to_document
from traindyno.core.errors import TraindynoError
from traindyno.core.lab_names import DEFAULT_LAB
from traindyno.core.verdict.execution_record import ExecutionRecord
from traindyno.core.verdict.reprice import Repriced, reprice
from traindyno.core.verdict.verdict import Verdict, judge, verdict_document
from traindyno.store.execution_record import load_record

PriceRegionOption = Annotated[
    str | None,
    typer.Option("--region", help="Take the Price List's prices of this region; by default of where it was run."),
]
LabRegionOption = Annotated[
    str | None, typer.Option(help="The AWS region that the lab is in; by default that of your AWS settings.")
]


class NoPriceFound(TraindynoError):
    """None of the execution's instance types has a price where it was looked for."""


def reprice_execution(
    execution: ExecutionArgument,
    prices: PricesOption = None,
    price_region: PriceRegionOption = None,
    local: LocalOption = False,
    lab: LabOption = DEFAULT_LAB,
    lab_region: LabRegionOption = None,
    profile: ProfileOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Compute costs and verdict anew at other prices, and say which price would change the answer."""
    if prices is not None and price_region is not None:
        raise typer.BadParameter("expected one of --prices and --region, got both")
    target = find_target(is_local=local, lab=lab, region=lab_region, profile=profile)
    record = load_record(target.results, execution)
    found = read_price_file(prices) if prices else _price_list(record, price_region or _region_of(record))
    _check_found(record, found, str(prices or price_region or _region_of(record)))
    before = judge(record.suite, record.cells, record.results)
    after = reprice(record.suite, record.cells, record.results, found)
    if output is Format.JSON:
        print_json(_document(record, before, after, found))
    else:
        print_repriced(STANDARD_OUTPUT, execution, before=before, after=after, prices=found)


def _instance_types(record: ExecutionRecord) -> list[str]:
    return list(dict.fromkeys(cell.settings.instance for cell in record.cells))


def _region_of(record: ExecutionRecord) -> str:
    known = (result.price.region for result in record.results if result.price.region)
    return next(known, str(clients.service_quotas().meta.region_name))


def _price_list(record: ExecutionRecord, region: str) -> dict[str, Price]:
    return read_prices(clients.pricing(), _instance_types(record), region=region, now=time.time())


def _check_found(record: ExecutionRecord, found: Mapping[str, Price], where: str) -> None:
    wanted = _instance_types(record)
    if not any(name in found for name in wanted):
        raise NoPriceFound(f"{where}: expected a price of {' or '.join(wanted)}, found none")


def _document(record: ExecutionRecord, before: Verdict, after: Repriced, prices: Mapping[str, Price]) -> dict[str, Any]:
    return {
        "execution_id": record.execution_id,
        "prices": to_document(prices),
        "is_flipped": after.is_flipped,
        "flips": [{**to_document(flip), "change": str(flip.change)} for flip in after.flips],
        "before": verdict_document(before),
        "after": verdict_document(after.verdict),
    }
