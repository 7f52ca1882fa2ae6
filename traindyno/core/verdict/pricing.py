"""One measurement at several prices: on demand, at spot, and with a training plan."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum

from traindyno.core.costs.hazard import Hazard, HazardKey, observe_hazards, posterior, seen_resumption
from traindyno.core.costs.prediction import ENDLESS
from traindyno.core.costs.spot import observe_discounts
from traindyno.core.jobs.attempt import trained_seconds
from traindyno.core.measurement.loss_parity import LossSpread
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.statistics.hosts import HostPriors
from traindyno.core.suite.choices import Purchase
from traindyno.core.suite.suite import Cell, Suite
from traindyno.core.verdict.goal_metric import Metric, estimate_of
from traindyno.core.verdict.verdict import Finding, Verdict, judge


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
    """``usd_per_hour`` is by instance type. ``hazards``: of the capacity, under the purchase option of the terms."""

    terms: Terms
    region: str | None
    basis: str
    usd_per_hour: Mapping[str, Decimal]
    hazards: Mapping[HazardKey, Hazard]


def price_options(
    suite: Suite,
    cells: Sequence[Cell],
    results: Sequence[RunResult],
    *,
    loss_spread: LossSpread | None = None,
    host_priors: HostPriors | None = None,
) -> tuple[PricedOption, ...]:
    """Empty if the only way is the one that was paid: there is nothing to compare.

    ``loss_spread`` and ``host_priors`` are the verdict's own, from the lab's history.
    """
    paid = judge(suite, cells, results, loss_spread=loss_spread, host_priors=host_priors)
    offers = list(_offers(suite, results))
    if len(offers) < 2:
        return ()
    options = []
    for offer in offers:
        verdict = judge(
            suite,
            cells,
            [_result_at(offer, result) for result in results],
            loss_spread=loss_spread,
            host_priors=host_priors,
            hazards=offer.hazards,
        )
        options.append(_option(offer, verdict, paid))
    return tuple(options)


def _offers(suite: Suite, results: Sequence[RunResult]) -> Iterator[_Offer]:
    listed = {
        result.run.cell.settings.instance: result.price
        for result in results
        if result.price.usd_per_instance_hour is not None
    }
    home = next((price.region for price in listed.values() if price.region), None)
    at_home = {name: price.usd_per_instance_hour or Decimal(0) for name, price in listed.items()}
    given = suite.pricing.spot
    sizes: dict[str, int] = {}
    for result in results:
        settings = result.run.cell.settings
        sizes[settings.instance] = min(settings.instance_count, sizes.get(settings.instance, settings.instance_count))
    resumed = seen_resumption(results)
    expected = {
        key: replace(posterior(key, count=0, hours=0.0, given=given, instances=sizes[key[0]]), resumed=resumed)
        for key in sorted((name, purchase.value) for name in sizes for purchase in Purchase)
    }
    hazards = {**expected, **observe_hazards(results, given)}
    if at_home:
        yield _Offer(
            terms=Terms.ON_DEMAND, region=home, basis="prices of the runs", usd_per_hour=at_home, hazards=hazards
        )
    discounts = {**{name: terms.discount for name, terms in suite.pricing.spot.items()}, **observe_discounts(results)}
    cheaper = {name: usd * (1 - Decimal(str(discounts[name]))) for name, usd in at_home.items() if name in discounts}
    if cheaper:
        basis = _spot_basis(discounts, hazards)
        yield _Offer(terms=Terms.SPOT, region=home, basis=basis, usd_per_hour=cheaper, hazards=hazards)
    reserved = {name: terms.usd_per_hour for name, terms in suite.pricing.training_plan.items()}
    if reserved:
        yield _Offer(
            terms=Terms.TRAINING_PLAN,
            region=home,
            basis="given in the suite",
            usd_per_hour=reserved,
            hazards=hazards,
        )


def _spot_basis(discounts: Mapping[str, float], hazards: Mapping[HazardKey, Hazard]) -> str:
    parts = []
    for name, discount in discounts.items():
        hazard = hazards.get((name, Purchase.SPOT.value))
        if hazard is not None:
            rate = f"{discount:.0%} off, {hazard.per_instance_hour:.3g} interruptions per instance-hour"
            parts.append(f"{name}: {rate} ({hazard.basis})")
    return f"{'; '.join(parts)}; lost work and restarts included"


def _endless_text(cells: int) -> str:
    if not cells:
        return ""
    named = "1 cell" if cells == 1 else f"{cells} cells"
    return f"; time and cost of {named} are unknown: {ENDLESS}"


def _result_at(offer: _Offer, result: RunResult) -> RunResult:
    """Billed for all of its training time, at the offer's price."""
    usd = offer.usd_per_hour.get(result.run.cell.settings.instance)
    price = replace(result.price, usd_per_instance_hour=usd, region=offer.region, purchase=_purchase(offer.terms))
    attempts = tuple(
        attempt if (seconds := trained_seconds(attempt)) is None else replace(attempt, billable_seconds=seconds)
        for attempt in result.attempts
    )
    return replace(result, price=price, attempts=attempts)


def _purchase(terms: Terms) -> str:
    return (Purchase.SPOT if terms is Terms.SPOT else Purchase.ON_DEMAND).value


def _option(offer: _Offer, verdict: Verdict, paid: Verdict) -> PricedOption:
    is_whole = verdict.goal.target is None
    # Capacity on which no run would end has no time or cost, unless that is so of what was paid for, too.
    is_hopeless = _leaves_out(verdict) and not _leaves_out(paid)
    usd, seconds = (
        {
            row.cell_id: found.mean
            for row in verdict.ranked_rows
            if not is_hopeless and (found := estimate_of(row, metric)) is not None
        }
        for metric in (
            Metric.USD if is_whole else Metric.USD_TO_TARGET,
            Metric.SECONDS if is_whole else Metric.SECONDS_TO_TARGET,
        )
    )
    where = f", {offer.region}" if offer.region else ""
    recommended = None if is_hopeless else verdict.recommended
    return PricedOption(
        name=f"{offer.terms}{where}",
        terms=offer.terms,
        region=offer.region,
        basis=f"{offer.basis}{_endless_text(sum(row.is_endless for row in verdict.rows))}",
        usd_per_hour=dict(offer.usd_per_hour),
        usd=usd,
        seconds=seconds,
        recommended=recommended,
        finding=Finding.NONE_MEASURED if is_hopeless else verdict.finding,
        is_flipped=recommended != paid.recommended,
    )


def _leaves_out(verdict: Verdict) -> bool:
    return any(row.is_without_interruptions for row in verdict.rows)
