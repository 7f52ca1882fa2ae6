"""`traindyno plan --regions`: prices, quotas and training plans of a suite's instance types, region by region."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from traindyno.aws import clients
from traindyno.aws.client_errors import AwsError
from traindyno.aws.prices import read_prices
from traindyno.aws.quotas import Quotas
from traindyno.aws.training_plans import find_offer
from traindyno.cli import option_values
from traindyno.core.planning.quotas import instance_quota
from traindyno.core.planning.regions import OfferSearch, RegionalType, largest_jobs, plan_hours, plan_size
from traindyno.core.suite.choices import Purchase
from traindyno.core.suite.suite import Cell, Suite

if TYPE_CHECKING:
    from mypy_boto3_pricing import PricingClient
    from mypy_boto3_sagemaker import SageMakerClient

RegionsOption = Annotated[
    str | None,
    typer.Option(
        help="Compare prices, quotas and training plans of these regions, such as us-east-1,eu-west-1.",
        callback=option_values.regions,
    ),
]


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
