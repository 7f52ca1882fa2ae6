"""Costs and verdict before and after a change of prices, as a person reads them in a terminal."""

from collections.abc import Iterator
from decimal import Decimal

from rich.console import Console
from rich.table import Table

from traindyno.cli.output import SIMULATED
from traindyno.core.costs.money import exact_usd_text
from traindyno.core.costs.prices import PriceList
from traindyno.core.costs.quantity_text import UNKNOWN, usd_text
from traindyno.core.suite.suite import GoalKind
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.reprice import PriceFlip, Repriced
from traindyno.core.verdict.verdict import Verdict
from traindyno.core.verdict.verdict_text import describe_verdict


def print_repriced(console: Console, execution_id: str, *, before: Verdict, after: Repriced, prices: PriceList) -> None:
    if after.verdict.is_simulated:
        console.print(SIMULATED)
    console.print(_table(execution_id, before, after.verdict))
    console.print()
    for line in (*_sources(after, prices), *_answers(before, after), *_changes(after)):
        console.print(line, markup=False)


def _table(execution_id: str, before: Verdict, after: Verdict) -> Table:
    title = f"{execution_id}: {after.examples:,} examples, before → after"
    table = Table(title=title, title_justify="left", pad_edge=False)
    table.add_column("")
    table.add_column("cell", overflow="fold")
    table.add_column("instance")
    for heading in ("$/h before", "$/h after", "cost before", "cost after", "change"):
        table.add_column(heading, justify="right")
    for row in before.rows:
        table.add_row(*_cells(row, after.row(row.cell_id), is_best=row.cell_id == after.recommended))
    return table


def _cells(before: CellRow, after: CellRow, *, is_best: bool) -> tuple[str, ...]:
    return (
        "→" if is_best else "",
        before.label,
        f"{before.instance_count} × {before.instance}",
        _price_text(before.usd_per_instance_hour),
        _price_text(after.usd_per_instance_hour),
        usd_text(before.usd.mean if before.usd else None),
        usd_text(after.usd.mean if after.usd else None),
        _share_text(after.usd.mean / before.usd.mean - 1) if before.usd and after.usd else UNKNOWN,
    )


def _sources(after: Repriced, prices: PriceList) -> Iterator[str]:
    """Where each type's price comes from now."""
    for instance, price in {result.run.cell.settings.instance: result.price for result in after.results}.items():
        kept = "" if instance in prices else " (as it was run: no other price was found)"
        yield f"{instance}: {price.source or UNKNOWN}, {price.region or UNKNOWN}, {price.date or UNKNOWN}{kept}"


def _answers(before: Verdict, after: Repriced) -> Iterator[str]:
    yield f"before: {describe_verdict(before).headline}"
    yield f"after:  {describe_verdict(after.verdict).headline}"
    yield "the recommendation changes" if after.is_flipped else "the recommendation stays"
    if before.spent_usd is not None and after.verdict.spent_usd is not None:
        yield f"the execution itself: {usd_text(before.spent_usd)} before, {usd_text(after.verdict.spent_usd)} after"


def _changes(after: Repriced) -> Iterator[str]:
    verdict = after.verdict
    best = verdict.row(verdict.recommended).label if verdict.recommended else ""
    for found in verdict.break_evens:
        price, label = exact_usd_text(found.usd_per_instance_hour), verdict.row(found.cell_id).label
        yield f"break-even: {found.instance} at {price} $/h, where {label} costs what {best} does"
    for flip in after.flips:
        yield _flip_text(verdict, flip)
    if not after.flips:
        yield f"no price changes the answer: {_why_none(verdict)}"


def _flip_text(verdict: Verdict, flip: PriceFlip) -> str:
    winner = verdict.row(flip.cell_id).label if flip.cell_id else "no cell"
    prices = f"{exact_usd_text(flip.now_usd_per_hour)} to {exact_usd_text(flip.at_usd_per_hour)} $/h"
    return f"the answer changes to {winner} with {flip.instance} from {prices} ({_share_text(float(flip.change))})"


def _why_none(verdict: Verdict) -> str:
    if verdict.recommended is None:
        return "no cell is recommended"
    if verdict.goal.kind is GoalKind.FASTEST:
        return "the goal is time alone"
    return "one instance type only, so that one price moves every cell"


def _price_text(usd_per_hour: Decimal | None) -> str:
    return UNKNOWN if usd_per_hour is None else exact_usd_text(usd_per_hour)


def _share_text(share: float) -> str:
    return f"{share * 100:+.1f} %".replace("-", "−")
