"""One measurement at two prices, on demand and at spot; their section of the report."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial

from traindyno.core.costs.hazard import (
    Hazard,
    HazardKey,
    observe_hazards,
    posterior,
    seen_resumption,
)
from traindyno.core.costs.quantity_text import UNKNOWN, exact_usd_text, seconds_text, usd_text
from traindyno.core.jobs.attempt import trained_seconds
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.choices import Purchase
from traindyno.core.suite.suite import Suite
from traindyno.core.verdict.comparison import ExecutionRecord
from traindyno.core.verdict.judge import judge
from traindyno.core.verdict.report_data import Report
from traindyno.core.verdict.verdict import Finding, Verdict
from traindyno.figures.table import FigureColumn
from traindyno.report.markup import Markup, columns, draw_table, element, join

PART = "pricing"
SUMMARY = columns(
    "Paid",
    "Recommended",
    "Verdict",
    "# Cost",
    "# Time",
    "# Price of its instance",
    "From",
    explained={"Time": "wall clock, interruptions included"},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedOption:
    """The verdict for one way to pay. Mappings leave out what is unknown."""

    name: str
    #: Source of prices and interruptions.
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


def observe_discounts(results: Iterable[RunResult]) -> dict[str, float]:
    """Discount of each instance type: 1 - billable ÷ training of all its spot jobs, as SageMaker
    states the saving.
    """
    training: dict[str, float] = {}
    billable: dict[str, float] = {}
    for result in results:
        if result.price.purchase != Purchase.SPOT:
            continue
        name = result.run.cell.settings.instance
        for attempt in result.attempts:
            seconds = trained_seconds(attempt)
            if seconds is not None and attempt.billable_seconds is not None:
                training[name] = training.get(name, 0.0) + seconds
                billable[name] = billable.get(name, 0.0) + attempt.billable_seconds
    return {
        name: max(0.0, 1 - billable[name] / seconds)
        for name, seconds in training.items()
        if seconds > 0
    }


def price_options(record: ExecutionRecord) -> tuple[PricedOption, ...]:
    """The verdict for each way to pay.

    Empty if the only way is the one that was paid: there is nothing to compare.
    """
    suite = record.suite
    results = record.results
    judged = partial(judge, suite, record.cells, host_priors=record.host_priors)
    hazards = _hazards(suite, results)
    discounts = {name: terms.discount for name, terms in suite.pricing.spot.items()}
    discounts |= observe_discounts(results)
    prices = {result.run.cell.settings.instance: result.price for result in results}
    listed = {
        name: paid
        for name, price in prices.items()
        if (paid := price.usd_per_instance_hour) is not None
    }
    ways = (
        (Purchase.ON_DEMAND, "prices of the runs", listed),
        (
            Purchase.SPOT,
            _spot_basis(discounts, hazards),
            {
                name: usd * (1 - Decimal(str(discounts[name])))
                for name, usd in listed.items()
                if name in discounts
            },
        ),
    )
    known = [way for way in ways if way[2]]
    if len(known) < 2:
        return ()
    before = judged(results)
    region = next((f", {price.region}" for price in prices.values() if price.region), "")
    is_whole = suite.goal.target is None
    usd_metric = FigureColumn.USD if is_whole else FigureColumn.USD_TO_TARGET
    seconds_metric = FigureColumn.SECONDS if is_whole else FigureColumn.SECONDS_TO_TARGET
    options = []
    for purchase, basis, usd_per_hour in known:
        verdict = judged(
            [_result_at(purchase, usd_per_hour, result) for result in results], hazards=hazards
        )
        option = PricedOption(
            name=f"{purchase.replace('-', ' ')}{region}",
            basis=basis,
            usd_per_hour=usd_per_hour,
            usd=_means(verdict, usd_metric),
            seconds=_means(verdict, seconds_metric),
            recommended=verdict.recommended,
            finding=verdict.finding,
            is_flipped=verdict.recommended != before.recommended,
        )
        options.append(option)
    return tuple(options)


def _means(verdict: Verdict, metric: FigureColumn) -> dict[str, float]:
    """Mean of each cell whose estimate is known."""
    estimates = {row.cell_id: row.estimate(metric) for row in verdict.ranked_rows}
    return {
        cell_id: estimate.mean for cell_id, estimate in estimates.items() if estimate is not None
    }


def _hazards(suite: Suite, results: Sequence[RunResult]) -> dict[HazardKey, Hazard]:
    """The hazard of each type of the runs, under each purchase option."""
    given = suite.pricing.spot
    sizes = dict[str, int]()
    for result in results:
        settings = result.run.cell.settings
        sizes[settings.instance] = min(
            settings.instance_count, sizes.get(settings.instance, settings.instance_count)
        )
    resumed = seen_resumption(results)
    expected = {
        key: replace(
            posterior(key, count=0, hours=0.0, given=given, instances=sizes[key[0]]),
            resumed=resumed,
        )
        for key in sorted((name, purchase.value) for name in sizes for purchase in Purchase)
    }
    return {**expected, **observe_hazards(results, given)}


def _spot_basis(discounts: Mapping[str, float], hazards: Mapping[HazardKey, Hazard]) -> str:
    parts = []
    for name, discount in discounts.items():
        hazard = hazards.get((name, Purchase.SPOT.value))
        if hazard is not None:
            rate = (
                f"{discount:.0%} off, {hazard.per_instance_hour:.3g} interruptions per "
                "instance-hour"
            )
            parts.append(f"{name}: {rate} ({hazard.basis})")
    return f"{'; '.join(parts)}; lost work and restarts included"


def _result_at(
    purchase: Purchase, usd_per_hour: Mapping[str, Decimal], result: RunResult
) -> RunResult:
    """The result as if all of its training time were billed at this price."""
    usd = usd_per_hour.get(result.run.cell.settings.instance)
    price = replace(result.price, usd_per_instance_hour=usd, purchase=purchase.value)
    attempts = tuple(
        attempt
        if (seconds := trained_seconds(attempt)) is None
        else replace(attempt, billable_seconds=seconds)
        for attempt in result.attempts
    )
    return replace(result, price=price, attempts=attempts)


def draw_pricing(report: Report) -> Markup | None:
    options = report.part(PART, PricedOption)
    if not options:
        return None
    flipped = [option.name for option in options if option.is_flipped]
    answer = "The same cell is recommended at all of these prices."
    if flipped:
        answer = f"Another cell is recommended if you pay: {'; '.join(flipped)}."
    return element(
        "section",
        element("h2", "At other prices"),
        element("p", answer),
        draw_table(
            SUMMARY,
            [_summary(option, report.verdict) for option in options],
            caption="The runs were measured once; each row applies other prices to the same "
            "measurements.",
            emphasized=[index for index, option in enumerate(options) if option.is_flipped],
        ),
        id="pricing",
    )


def _summary(option: PricedOption, verdict: Verdict) -> list[str | None]:
    best = verdict.row(option.recommended) if option.recommended else None
    usd, seconds = (
        values.get(best.cell_id) if best else None for values in (option.usd, option.seconds)
    )
    price = option.usd_per_hour.get(best.instance) if best else None
    return [
        option.name,
        best.label if best else "no cell",
        join(
            "changes" if option.is_flipped else "holds",
            element("small", option.finding.value.replace("_", " ")),
        ),
        usd_text(usd),
        seconds_text(seconds),
        UNKNOWN if price is None else f"{exact_usd_text(price)}/h",
        option.basis,
    ]


def verdict_lines(report: Report) -> Iterator[str]:
    options = report.part(PART, PricedOption)
    for option in options:
        if option.is_flipped:
            best = report.verdict.row(option.recommended).label if option.recommended else "no cell"
            usd = usd_text(option.usd.get(option.recommended or ""))
            yield f"The verdict changes if you pay {option.name}: {best}, {usd}."
    if options and not any(option.is_flipped for option in options):
        yield (
            f"The verdict holds at {len(options)} ways to pay: "
            f"{', '.join(option.name for option in options)}."
        )
