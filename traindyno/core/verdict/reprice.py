"""The same measurements at other prices: new costs and verdict, and the price that would change the answer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from traindyno.core.costs.prices import Price, PriceList
from traindyno.core.measurement.loss_parity import LossSpread
from traindyno.core.measurement.run_result import PaidPrice, RunResult
from traindyno.core.statistics.hosts import HostPriors
from traindyno.core.suite.choices import GoalKind
from traindyno.core.suite.suite import Cell, Suite
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.goal_metric import Metric, estimate_of
from traindyno.core.verdict.verdict import Verdict, judge

TEN_THOUSANDTH = Decimal("0.0001")


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceFlip:
    """The recommendation changes to ``cell_id`` (None: to no cell) at ``at_usd_per_hour`` for ``instance``."""

    instance: str
    now_usd_per_hour: Decimal
    at_usd_per_hour: Decimal
    cell_id: str | None

    @property
    def change(self) -> Decimal:
        """The change as a share of the price now: -0.1 is ten per cent cheaper."""
        return self.at_usd_per_hour / self.now_usd_per_hour - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Repriced:
    results: tuple[RunResult, ...]
    verdict: Verdict
    is_flipped: bool
    flips: tuple[PriceFlip, ...]


def reprice(
    suite: Suite,
    cells: Sequence[Cell],
    results: Sequence[RunResult],
    prices: PriceList,
    *,
    loss_spread: LossSpread | None = None,
    host_priors: HostPriors | None = None,
) -> Repriced:
    """Types without an entry in ``prices`` keep the price that was paid."""
    before = judge(suite, cells, results, loss_spread=loss_spread, host_priors=host_priors)
    repriced = tuple(_reprice(result, prices.get(result.run.cell.settings.instance)) for result in results)
    after = judge(suite, cells, repriced, loss_spread=loss_spread, host_priors=host_priors)
    return Repriced(
        results=repriced,
        verdict=after,
        is_flipped=after.recommended != before.recommended,
        flips=find_flips(after),
    )


def find_flips(verdict: Verdict) -> tuple[PriceFlip, ...]:
    """Compares means and changes one price at a time. The smallest change is first; empty if cost is not the goal."""
    best = verdict.expected
    if best is None or best.usd is None or best.usd_per_instance_hour is None:
        return ()
    if verdict.goal.kind is GoalKind.FASTEST_WITHIN:
        assert verdict.goal.usd is not None, "the goal has a cost limit"
        if best.prediction is None or best.prediction.usd is None:
            return ()
        next_best = verdict.runner_up.cell_id if verdict.runner_up else None
        return (_flip(best, verdict.goal.usd / Decimal(str(best.prediction.usd.high)), next_best),)
    if verdict.goal.is_time or not verdict.metric.is_money:
        return ()
    rivals = [
        row
        for row in verdict.ranked_rows
        if estimate_of(row, verdict.metric) and row.instance != best.instance and row.cell_id not in verdict.refused
    ]
    flips = [
        *_own_price_flip(best, rivals, verdict.metric),
        *_rival_price_flips(best, rivals, verdict.metric),
    ]
    return tuple(sorted(flips, key=lambda flip: abs(flip.change)))


def _reprice(result: RunResult, price: Price | None) -> RunResult:
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


def _own_price_flip(best: CellRow, rivals: Sequence[CellRow], metric: Metric) -> list[PriceFlip]:
    """The recommended cell's type becomes as expensive as the cheapest cell of another type."""
    if not rivals:
        return []
    nearest = min(rivals, key=lambda row: _usd(row, metric))
    return [_flip(best, _usd(nearest, metric) / _usd(best, metric), nearest.cell_id)]


def _rival_price_flips(best: CellRow, rivals: Sequence[CellRow], metric: Metric) -> list[PriceFlip]:
    """Each other type becomes so cheap that its cheapest cell costs as much as the recommended one."""
    flips = []
    for instance in dict.fromkeys(row.instance for row in rivals):
        of_type = [row for row in rivals if row.instance == instance]
        nearest = min(of_type, key=lambda row: _usd(row, metric))
        if nearest.usd_per_instance_hour is not None:
            flips.append(_flip(nearest, _usd(best, metric) / _usd(nearest, metric), nearest.cell_id))
    return flips


def _flip(row: CellRow, factor: Decimal, cell_id: str | None) -> PriceFlip:
    now = row.usd_per_instance_hour
    assert now is not None, "only priced cells are compared"
    at = (now * factor).quantize(TEN_THOUSANDTH)
    return PriceFlip(instance=row.instance, now_usd_per_hour=now, at_usd_per_hour=at, cell_id=cell_id)


def _usd(row: CellRow, metric: Metric) -> Decimal:
    found = estimate_of(row, metric)
    assert found is not None, "only priced cells are compared"
    return Decimal(str(found.mean))
