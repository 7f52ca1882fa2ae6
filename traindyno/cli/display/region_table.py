"""The table by which a person chooses a region for a lab."""

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.table import Table

from traindyno.cli.output import STANDARD_OUTPUT, OutputFormat, print_json
from traindyno.core.costs.money import exact_usd_text
from traindyno.core.costs.quantity_text import UNKNOWN, count_text
from traindyno.core.documents.stored import to_document
from traindyno.core.planning.quotas import QuotaReading
from traindyno.core.planning.regions import OfferSearch, RegionalType

HEADINGS = ("region", "instance", "price/h", "quota", "in use", "spot quota", "largest job", "training plan")


def print_regions(suite_name: str, found: Sequence[RegionalType], output: OutputFormat) -> None:
    if output is OutputFormat.JSON:
        print_json({"suite": suite_name, "regions": [{**to_document(each), "fits": each.fits} for each in found]})
        return
    STANDARD_OUTPUT.print(regions_table(found))
    for line in region_problems(found):
        STANDARD_OUTPUT.print(line)


def regions_table(found: Sequence[RegionalType]) -> Table:
    table = Table(title="regions", title_justify="left", pad_edge=False)
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading in {"region", "instance", "training plan"} else "right")
    for each in found:
        table.add_row(*_cells(each))
    return table


def _cells(each: RegionalType) -> tuple[str, ...]:
    return (
        each.region,
        each.instance_type,
        exact_usd_text(each.price.usd_per_hour) if each.price else "not offered",
        _limit(each.on_demand),
        count_text(each.on_demand.in_use) if each.on_demand else UNKNOWN,
        _limit(each.spot),
        f"{each.largest} ×, {_fits(each)}",
        _offer(each.plan),
    )


def _limit(reading: QuotaReading | None) -> str:
    return count_text(reading.limit if reading else None)


def _fits(each: RegionalType) -> str:
    match each.fits:
        case None:
            return UNKNOWN
        case True:
            return "fits"
        case False:
            return "needs an increase"


def _offer(search: OfferSearch) -> str:
    offer = search.offer
    if offer is None:
        return search.reason or UNKNOWN
    day = datetime.fromtimestamp(offer.starts_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    zone = f", {offer.zone}" if offer.zone else ""
    price = exact_usd_text(round(offer.usd_per_hour, 4))
    return f"{price}/h from {day}: {offer.instance_count} × {offer.hours} h{zone}"


def region_problems(found: Sequence[RegionalType]) -> list[str]:
    return [f"{each.region}, {each.instance_type}: {each.quota_problem}" for each in found if each.quota_problem]
