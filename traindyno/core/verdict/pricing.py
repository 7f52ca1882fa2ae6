"""One measurement at several prices: on demand, at spot, with a training plan, and in other regions."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum

from traindyno.core.costs.interruptions import with_interruptions
from traindyno.core.costs.prices import PriceList
from traindyno.core.costs.projection import read_job_time
from traindyno.core.costs.spot import SpotExpectation, expect_spot, with_checkpoints_of
from traindyno.core.measurement.loss_parity import LossSpread
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.statistics.hosts import HostPriors
from traindyno.core.suite.choices import Purchase
from traindyno.core.suite.suite import Cell, Suite
from traindyno.core.verdict.goal_metric import Metric, estimate_of
from traindyno.core.verdict.verdict import Finding, Verdict, judge

RegionPrices = Mapping[str, PriceList]


class Terms(StrEnum):
    """The way to pay for capacity."""

    ON_DEMAND = "on demand"
    SPOT = "spot"
    TRAINING_PLAN = "training plan"


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedOption:
    """The verdict at one way to pay. Mappings leave out what is unknown."""

    name: str
    terms: Terms
    region: str | None
    #: Where prices and interruptions come from.
    basis: str
    #: Instance type → price of an instance hour of training.
    usd_per_hour: Mapping[str, Decimal]
    #: Cell id → cost of the whole work.
    usd: Mapping[str, float]
    recommended: str | None
    finding: Finding
    #: Another cell is recommended than at the prices that were paid.
    is_flipped: bool
    #: Cell id → wall clock, on spot with the expected interruptions.
    seconds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Offer:
    """``usd_per_hour`` and ``spot`` are by instance type."""

    terms: Terms
    region: str | None
    basis: str
    usd_per_hour: Mapping[str, Decimal]
    spot: Mapping[str, SpotExpectation]


def price_options(
    suite: Suite,
    cells: Sequence[Cell],
    results: Sequence[RunResult],
    *,
    region_prices: RegionPrices,
    loss_spread: LossSpread | None = None,
    host_priors: HostPriors | None = None,
) -> tuple[PricedOption, ...]:
    """Empty if the only way is the one that was paid: there is nothing to compare.

    ``loss_spread`` and ``host_priors`` are the verdict's own, from the lab's history.
    """
    paid = judge(suite, cells, results, loss_spread=loss_spread, host_priors=host_priors)
    offers = list(_offers(suite, results, region_prices))
    if len(offers) < 2:
        return ()
    options = []
    for offer in offers:
        repriced, endless = _at(offer, results, suite)
        verdict = judge(suite, cells, repriced, loss_spread=loss_spread, host_priors=host_priors)
        options.append(_option(replace(offer, basis=f"{offer.basis}{_endless_text(endless)}"), verdict, paid))
    return tuple(options)


def _offers(suite: Suite, results: Sequence[RunResult], region_prices: RegionPrices) -> Iterator[_Offer]:
    listed = {
        result.run.cell.settings.instance: result.price
        for result in results
        if result.price.usd_per_instance_hour is not None
    }
    home = next((price.region for price in listed.values() if price.region), None)
    at_home = {name: price.usd_per_instance_hour or Decimal(0) for name, price in listed.items()}
    if at_home:
        yield _Offer(terms=Terms.ON_DEMAND, region=home, basis="prices of the runs", usd_per_hour=at_home, spot={})
    spot = expect_spot(results, suite.pricing.spot)
    cheaper = {
        name: usd * (1 - Decimal(str(spot[name].terms.discount))) for name, usd in at_home.items() if name in spot
    }
    if cheaper:
        yield _Offer(terms=Terms.SPOT, region=home, basis=_spot_basis(spot), usd_per_hour=cheaper, spot=spot)
    reserved = {name: terms.usd_per_hour for name, terms in suite.pricing.training_plan.items()}
    if reserved:
        yield _Offer(terms=Terms.TRAINING_PLAN, region=home, basis="given in the suite", usd_per_hour=reserved, spot={})
    for region, prices in region_prices.items():
        found = {name: price.usd_per_hour for name, price in prices.items()}
        if region != home and found:
            source = next(iter(prices.values())).source
            yield _Offer(terms=Terms.ON_DEMAND, region=region, basis=source, usd_per_hour=found, spot={})


def _spot_basis(spot: Mapping[str, SpotExpectation]) -> str:
    parts = []
    for name, each in spot.items():
        rate = f"{each.terms.discount:.0%} off, {each.terms.interruptions_per_hour:.3g} interruptions/h"
        seen = "assumed" if each.training_hours is None else f"observed in {each.training_hours:.1f} h of spot training"
        parts.append(f"{name}: {rate} ({seen})")
    return f"{'; '.join(parts)}; lost work and restarts included"


def _at(offer: _Offer, results: Sequence[RunResult], suite: Suite) -> tuple[list[RunResult], set[str]]:
    """The results at the offer's prices, without the cells whose runs would hardly ever end, and those cells' ids."""
    priced = [(result.run.cell.cell_id, _result_at(offer, result, suite)) for result in results]
    endless = {cell_id for cell_id, found in priced if found is None}
    return [found for cell_id, found in priced if found is not None and cell_id not in endless], endless


def _endless_text(endless: Collection[str]) -> str:
    if not endless:
        return ""
    cells = "1 cell" if len(endless) == 1 else f"{len(endless)} cells"
    return f"; time and cost of {cells} are unknown: almost every start is interrupted before its next checkpoint"


def _result_at(offer: _Offer, result: RunResult, suite: Suite) -> RunResult | None:
    """Billed for all of its training time, at the offer's price; interruptions make that time longer."""
    name = result.run.cell.settings.instance
    usd = offer.usd_per_hour.get(name)
    price = replace(result.price, usd_per_instance_hour=usd, region=offer.region, purchase=_purchase(offer.terms))
    attempts = tuple(
        replace(attempt, billable_seconds=time.training) if (time := read_job_time(attempt)) else attempt
        for attempt in result.attempts
    )
    paid = replace(result, price=price, attempts=attempts)
    if name not in offer.spot:
        return paid
    terms = with_checkpoints_of(result, suite.measurement.checkpoint_every_steps, offer.spot[name].terms)
    return with_interruptions(paid, terms, suite.goal.target)


def _purchase(terms: Terms) -> str:
    return (Purchase.SPOT if terms is Terms.SPOT else Purchase.ON_DEMAND).value


def _option(offer: _Offer, verdict: Verdict, paid: Verdict) -> PricedOption:
    is_whole = verdict.goal.target is None
    usd, seconds = (
        {row.cell_id: found.mean for row in verdict.rows if (found := estimate_of(row, metric)) is not None}
        for metric in (
            Metric.USD if is_whole else Metric.USD_TO_TARGET,
            Metric.SECONDS if is_whole else Metric.SECONDS_TO_TARGET,
        )
    )
    where = f", {offer.region}" if offer.region else ""
    return PricedOption(
        name=f"{offer.terms}{where}",
        terms=offer.terms,
        region=offer.region,
        basis=offer.basis,
        usd_per_hour=dict(offer.usd_per_hour),
        usd=usd,
        seconds=seconds,
        recommended=verdict.recommended,
        finding=verdict.finding,
        is_flipped=verdict.recommended != paid.recommended,
    )
