"""`traindyno plan --regions`: prices, quotas and training plans of a suite's instance types, region by region."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from traindyno.aws import clients
from traindyno.aws.client_errors import AwsError
from traindyno.aws.prices import read_prices
from traindyno.aws.quotas import Quotas
from traindyno.aws.training_plans import find_offer
from traindyno.cli.output import STANDARD_OUTPUT, OutputFormat, print_json
from traindyno.core.costs.money import exact_usd_text
from traindyno.core.costs.quantity_text import UNKNOWN, count_text
from traindyno.core.documents.stored import to_document
from traindyno.core.planning.quotas import QuotaReading, instance_quota
from traindyno.core.planning.regions import OfferSearch, RegionalType, largest_jobs, plan_hours, plan_size
from traindyno.core.suite.cells import expand_cells
from traindyno.core.suite.choices import Purchase
from traindyno.core.suite.suite import Cell, Suite

if TYPE_CHECKING:
    from mypy_boto3_pricing import PricingClient
    from mypy_boto3_sagemaker import SageMakerClient

RegionsOption = Annotated[
    str | None,
    typer.Option(help="Compare prices, quotas and training plans of these regions, such as us-east-1,eu-west-1."),
]
HEADINGS = ("region", "instance", "price/h", "quota", "in use", "spot quota", "largest job", "training plan")


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionClients:
    """``pricing`` answers for every region; each other client answers for its own."""

    pricing: "PricingClient"
    quotas: Quotas
    sagemaker: "SageMakerClient"


def clients_of(region: str) -> RegionClients:
    sagemaker = clients.sagemaker_in(region)
    quotas = Quotas(clients.service_quotas_in(region), clients.cloudwatch_in(region), sagemaker, sleep=time.sleep)
    return RegionClients(pricing=clients.pricing(), quotas=quotas, sagemaker=sagemaker)


def split_regions(text: str) -> list[str]:
    return list(dict.fromkeys(filter(None, (part.strip() for part in text.split(",")))))


def show_regions(suite: Suite, regions: Sequence[str], output: OutputFormat) -> None:
    """Print the table by which a person chooses a region for a lab; nothing is planned."""
    found = compare_regions(suite, expand_cells(suite), regions, now=time.time())
    if output is OutputFormat.JSON:
        print_json({"suite": suite.name, "regions": [{**to_document(each), "fits": each.fits} for each in found]})
        return
    STANDARD_OUTPUT.print(regions_table(found))
    for line in region_problems(found):
        STANDARD_OUTPUT.print(line, markup=False)


def compare_regions(
    suite: Suite,
    cells: Sequence[Cell],
    regions: Sequence[str],
    *,
    connect: Callable[[str], RegionClients] = clients_of,
    now: float,
) -> tuple[RegionalType, ...]:
    """A region whose quotas the account can't read, because it is not enabled, has its prices and the reason."""
    return tuple(found for region in regions for found in _look_up(suite, cells, region, connect(region), now))


def _look_up(
    suite: Suite, cells: Sequence[Cell], region: str, services: RegionClients, now: float
) -> Iterator[RegionalType]:
    largest = largest_jobs(cells)
    prices = read_prices(services.pricing, largest, region=region, now=now)
    for name, count in largest.items():
        found = RegionalType(
            region=region,
            instance_type=name,
            largest=count,
            price=prices.get(name),
            on_demand=None,
            spot=None,
            plan=OfferSearch(offer=None, reason="not offered here"),
        )
        if found.price is not None:
            found = _with_capacity(found, suite, services, now)
        yield found


def _with_capacity(found: RegionalType, suite: Suite, services: RegionClients, now: float) -> RegionalType:
    wanted = {purchase: instance_quota(found.instance_type, purchase) for purchase in Purchase}
    size = plan_size(found.largest)
    plan = (
        OfferSearch(offer=None, reason="no plan is that large")
        if size is None
        else find_offer(services.sagemaker, found.instance_type, instance_count=size, hours=plan_hours(suite))
    )
    try:
        readings = services.quotas.read(wanted.values(), now=now)
    except AwsError as error:
        return replace(found, plan=plan, quota_problem=str(error))
    on_demand, spot = (readings[wanted[purchase].name] for purchase in (Purchase.ON_DEMAND, Purchase.SPOT))
    return replace(found, plan=plan, on_demand=on_demand, spot=spot)


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
