"""What a plan reads: prices and quotas, from files or from the account."""

import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, NoRegionError

from traindyno.api.suite_text import InputFileInvalid, read_input_file
from traindyno.aws import clients
from traindyno.aws.account import AccountUnreachable, settings_problem
from traindyno.aws.prices import PriceSource
from traindyno.aws.quotas import Quotas
from traindyno.core.costs.prices import PRICES_SHAPE, Price, PriceList, parse_prices
from traindyno.core.planning.preparation_plan import planned_instances
from traindyno.core.planning.quotas import (
    SHAPE,
    GivenQuotas,
    Quota,
    QuotaReading,
    QuotaReadings,
    needed_quotas,
    parse_quotas,
)
from traindyno.core.suite.suite import Suite

NO_SETTINGS = (NoRegionError, NoCredentialsError)
SNAPSHOT_REGION = "us-east-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInputs:
    """Prices and quotas that a plan uses.

    ``read_at`` is in epoch seconds. ``why_assumed`` says why prices come from a snapshot and quotas
    are AWS's defaults for a new account, as they do without AWS settings.
    """

    read_at: float
    region: str
    prices: PriceList
    quotas: QuotaReadings
    why_assumed: str | None = None

    @property
    def note(self) -> str | None:
        """Note for a person on where prices and quotas come from."""
        return self.why_assumed and (
            f"note: {self.why_assumed}: prices are of a snapshot of {self.region}, not AWS's, and "
            "quotas are a new account's; with credentials (--profile) they are your account's"
        )


def read_plan_inputs(
    suite: Suite,
    *,
    price_path: Path | None,
    quota_path: Path | None,
    now: float,
    counts_in_use: bool = True,
) -> PlanInputs:
    """Read prices and quotas; without ``counts_in_use``, quotas without the instances in use.

    An AWS client is created only for values that no file gives. Raises AccountUnreachable.
    """
    prices = read_price_file(price_path) if price_path else None
    given = read_input_file(quota_path, parse_quotas, fields=SHAPE) if quota_path else None
    region = _one_region(prices, given)
    needed = needed_quotas(suite)
    try:
        if prices is None:
            region = region or account_region()
            prices = PriceSource(region=region, now=now).read(planned_instances(suite))
        quotas = (
            given.needed(needed)
            if given
            else _read_quotas(needed, now, counts_in_use=counts_in_use)
        )
    except (BotoCoreError, ClientError) as error:
        problem = settings_problem(error)
        if problem is None:
            raise
        snapshot = _snapshot_prices() if price_path is None and quota_path is None else {}
        if snapshot and isinstance(error, NO_SETTINGS) and region in (None, SNAPSHOT_REGION):
            defaults = {
                quota.name: QuotaReading(
                    quota=quota,
                    applied=None,
                    default=quota.default,
                    in_use=None,
                    region=SNAPSHOT_REGION,
                )
                for quota in needed
            }
            return PlanInputs(
                read_at=now,
                region=SNAPSHOT_REGION,
                prices=snapshot,
                quotas=defaults,
                why_assumed=f"no AWS account ({problem})",
            )
        elsewhere = f" (--region {SNAPSHOT_REGION}: a snapshot of prices)" if snapshot else ""
        raise AccountUnreachable(
            f"{problem}: prices of {region or 'no region'} can't be read: give --profile or "
            "--region, --local for the local cloud, or --prices FILE and --quotas FILE to plan "
            f"without an account{elsewhere}"
        ) from error
    return PlanInputs(read_at=now, region=region or account_region(), prices=prices, quotas=quotas)


def _snapshot_prices() -> PriceList:
    """Third parties' figures, each with its source; none without a checkout, whose local cloud has
    them.
    """
    try:
        from localcloud.sagemaker_service.api.pricing_api import read_snapshot  # noqa: PLC0415  (the wheel lacks it)
    except ModuleNotFoundError:
        return {}
    as_of, rows = read_snapshot()
    return {
        name: Price(
            instance_type=name,
            region=SNAPSHOT_REGION,
            usd_per_hour=usd_per_hour,
            as_of=as_of,
            source=f"a snapshot, not AWS's: {source}",
        )
        for name, (usd_per_hour, source) in rows.items()
    }


def read_price_file(path: Path) -> dict[str, Price]:
    return read_input_file(
        path, lambda document: parse_prices(document, source=path.name), fields=PRICES_SHAPE
    )


def _read_quotas(needed: Collection[Quota], now: float, *, counts_in_use: bool) -> QuotaReadings:
    if not needed:
        return {}
    quotas = Quotas(clients.service_quotas(), clients.sagemaker(), sleep=time.sleep)
    return quotas.read(needed, now=now) if counts_in_use else quotas.read_limits(needed)


def account_region() -> str:
    return str(clients.service_quotas().meta.region_name)


def _one_region(prices: PriceList | None, given: GivenQuotas | None) -> str | None:
    regions = {price.region for price in (prices or {}).values()} | (
        {given.region} if given else set()
    )
    if len(regions) > 1:
        raise InputFileInvalid(
            f"--prices and --quotas are of different regions, {' and '.join(sorted(regions))}: "
            "give files of one region"
        )
    return next(iter(regions), None)
