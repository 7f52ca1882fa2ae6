"""Cost against time: the cells that no other cell beats in both (the Pareto front)."""

from dataclasses import dataclass

from traindyno.core.statistics.estimates import Estimate
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeOff:
    """A cell's time and cost, of the whole workload or until the goal's target. ``is_on_front``: no cell beats both."""

    row: CellRow
    seconds: Estimate
    usd: Estimate
    is_on_front: bool


def find_trade_offs(verdict: Verdict) -> tuple[TradeOff, ...]:
    """All cells whose time and cost are known, the fastest first. A refused cell is never on the front."""
    known = [(row, pair) for row in verdict.ranked_rows if (pair := _pair(row, verdict)) is not None]
    known.sort(key=lambda each: (each[1][0].mean, each[1][1].mean))
    found, cheapest = [], float("inf")
    for row, (seconds, usd) in known:
        is_on_front = row.cell_id not in verdict.refused and usd.mean < cheapest
        if is_on_front:
            cheapest = usd.mean
        found.append(TradeOff(row=row, seconds=seconds, usd=usd, is_on_front=is_on_front))
    return tuple(found)


def _pair(row: CellRow, verdict: Verdict) -> tuple[Estimate, Estimate] | None:
    is_whole = verdict.goal.target is None
    seconds, usd = (row.seconds, row.usd) if is_whole else (row.quality.seconds, row.quality.usd)
    return None if seconds is None or usd is None else (seconds, usd)
