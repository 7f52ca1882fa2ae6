"""`traindyno reprice`: an execution's costs and verdict at other prices, without running
anything.
"""

from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Annotated

import typer

from traindyno.api.plan_inputs import read_price_file
from traindyno.aws import clients
from traindyno.aws.prices import PriceSource
from traindyno.cli import option_values
from traindyno.cli.client import Client
from traindyno.cli.inputs.plan_options import PricesOption
from traindyno.cli.lab_choice import ExecutionArgument, FormatOption, LabChoice, with_options_of
from traindyno.cli.option_rules import refuse
from traindyno.cli.output import (
    SIMULATED,
    STANDARD_OUTPUT,
    OutputFormat,
    Terminal,
    print_json,
    titled_table,
)
from traindyno.core.costs.prices import Price, PriceList
from traindyno.core.costs.quantity_text import UNKNOWN, exact_usd_text, usd_text
from traindyno.core.documents.stored import to_document
from traindyno.core.errors import TraindynoError
from traindyno.core.measurement.run_result import PaidPrice, RunResult
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.comparison import ExecutionRecord
from traindyno.core.verdict.judge import judge
from traindyno.core.verdict.verdict import Verdict, verdict_document
from traindyno.core.verdict.verdict_text import describe_verdict
from traindyno.store.results import load_record

PriceRegionOption = Annotated[
    str | None,
    typer.Option(
        "--region",
        help="Use the Price List's prices of this region; by default the region of the runs.",
        callback=option_values.region,
    ),
]
LabRegionOption = Annotated[
    str | None,
    typer.Option(
        "--lab-region",
        help="The AWS region that the lab is in; by default the region of your AWS settings.",
        callback=option_values.region,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedLabChoice(LabChoice):
    """The choice of a lab beside ``--region``, which is the region of the prices here.

    Another option gives the lab's region.
    """

    region: LabRegionOption = None


class NoPriceFound(TraindynoError):
    """The price source has no price for any instance type of the execution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repriced:
    results: tuple[RunResult, ...]
    before: Verdict
    verdict: Verdict
    is_flipped: bool


def reprice(record: ExecutionRecord, prices: PriceList) -> Repriced:
    """The execution at other prices. Types without an entry in ``prices`` keep the price that was
    paid.
    """
    judged = partial(judge, record.suite, record.cells, host_priors=record.host_priors)
    before = judged(record.results)
    repriced = tuple(
        _at_price(result, prices.get(result.run.cell.settings.instance))
        for result in record.results
    )
    after = judged(repriced)
    return Repriced(
        results=repriced,
        before=before,
        verdict=after,
        is_flipped=after.recommended != before.recommended,
    )


def _at_price(result: RunResult, price: Price | None) -> RunResult:
    if price is None:
        return result
    paid = PaidPrice(
        usd_per_instance_hour=price.usd_per_hour,
        region=price.region,
        date=price.as_of,
        source=price.source,
        purchase=result.price.purchase,
    )
    return replace(result, price=paid)


@with_options_of(
    PricedLabChoice, refuse("price_region", beside="prices", why="such a file is of one region")
)
def reprice_execution(
    choice: PricedLabChoice,
    execution: ExecutionArgument,
    prices: PricesOption = None,
    price_region: PriceRegionOption = None,
    output: FormatOption = OutputFormat.TABLE,
) -> None:
    """Recompute costs and verdict at other prices, and show which price would change the
    verdict.
    """
    given = None if prices is None else read_price_file(prices)
    target = choice.find_target()
    target.require_execution(execution)
    record = load_record(target.results, execution)
    wanted = list(dict.fromkeys(cell.settings.instance for cell in record.cells))
    where = str(prices or price_region or _region_of(record))
    listed = PriceSource(region=where).read(wanted) if given is None else given
    if not any(name in listed for name in wanted):
        raise NoPriceFound(f"{where}: no price of {' or '.join(wanted)} was found")
    after = reprice(record, listed)
    if output is OutputFormat.JSON:
        verdicts = {
            "before": verdict_document(after.before),
            "after": verdict_document(after.verdict),
        }
        prices_used = to_document(listed)
        print_json(
            {
                "execution_id": record.execution_id,
                "prices": prices_used,
                "is_flipped": after.is_flipped,
                **verdicts,
            }
        )
    else:
        print_repriced(STANDARD_OUTPUT, execution, after, prices=listed)


def _region_of(record: ExecutionRecord) -> str:
    known = (result.price.region for result in record.results if result.price.region)
    return next(known, str(clients.service_quotas().meta.region_name))


def print_repriced(
    console: Terminal, execution_id: str, after: Repriced, *, prices: PriceList
) -> None:
    before = after.before
    if after.verdict.is_simulated:
        console.print(SIMULATED)
    title = f"{execution_id}: {after.verdict.examples:,} examples, before → after"
    numbers = (">price/h before", ">price/h after", ">cost before", ">cost after", ">change")
    table = titled_table(title, "", "cell~", "instance", *numbers)
    shown = {row.cell_id: row for row in before.ranked_rows}
    repriced = {row.cell_id: row for row in after.verdict.ranked_rows}
    best_id = after.verdict.recommended
    for cell_id in (row.cell_id for row in before.rows):
        table.add_row(*_cells(shown[cell_id], repriced[cell_id], is_best=cell_id == best_id))
    console.print(table)
    console.print()
    for instance, price in {
        result.run.cell.settings.instance: result.price for result in after.results
    }.items():
        kept = "" if instance in prices else " (price of the run: no other price found)"
        source = f"{price.source or UNKNOWN}, {price.region or UNKNOWN}, {price.date or UNKNOWN}"
        console.print(f"{instance}: {source}{kept}")
    console.print(f"before: {describe_verdict(before).headline}")
    console.print(f"after:  {describe_verdict(after.verdict).headline}")
    console.print(
        "the recommendation changes" if after.is_flipped else "the recommendation does not change"
    )
    if before.spent_usd is not None and after.verdict.spent_usd is not None:
        spent = usd_text(before.spent_usd)
        then = usd_text(after.verdict.spent_usd)
        console.print(f"cost of the execution: {spent} before, {then} after")
    best = after.verdict.row(best_id).label if best_id else ""
    for break_even in after.verdict.sensitivity.break_evens:
        usd = exact_usd_text(break_even.usd_per_instance_hour)
        label = after.verdict.row(break_even.cell_id).label
        console.print(
            f"break-even: {break_even.instance} at {usd}/h, where {label} and {best} cost the same"
        )
    if not after.verdict.sensitivity.break_evens:
        console.print("no price of another instance type changes the verdict")


def _cells(before: CellRow, after: CellRow, *, is_best: bool) -> tuple[str, ...]:
    change = UNKNOWN
    if before.usd and after.usd:
        change = f"{(after.usd.mean / before.usd.mean - 1) * 100:+.1f} %".replace("-", "−")
    return (
        "→" if is_best else "",
        before.label,
        f"{before.instance_count} × {before.instance}",
        _price_text(before.usd_per_instance_hour),
        _price_text(after.usd_per_instance_hour),
        usd_text(before.usd.mean if before.usd else None),
        usd_text(after.usd.mean if after.usd else None),
        change,
    )


def _price_text(usd_per_hour: Decimal | None) -> str:
    return UNKNOWN if usd_per_hour is None else exact_usd_text(usd_per_hour)


def client() -> Client:
    return Client(
        commands={"reprice": (reprice_execution, "first --region eu-west-1")}, before="compare"
    )
