"""What a person should know of a plan beside its numbers."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from traindyno.core.costs.money import exact_usd_text
from traindyno.core.costs.prices import Price
from traindyno.core.planning.quotas import QuotaReading, QuotaReadings, is_host_shared, warm_pool_quota
from traindyno.core.suite.suite import Suite


class NotedLane(Protocol):
    @property
    def instance_type(self) -> str: ...

    @property
    def largest_instance_count(self) -> int: ...

    @property
    def price(self) -> Price | None: ...

    @property
    def fallback_prices(self) -> tuple[Price, ...]: ...

    @property
    def quota(self) -> QuotaReading | None: ...


def write_notes(suite: Suite, lanes: Sequence[NotedLane], quotas: QuotaReadings) -> Iterator[str]:
    for lane in lanes:
        if is_host_shared(lane.instance_type):
            continue
        yield from _fallback_note(lane)
        if lane.quota is not None and lane.quota.is_not_listed:
            continue
        if lane.quota is None or lane.quota.limit is None:
            yield f"the quota for {lane.instance_type} is unknown: its runs go one at a time"
        elif (
            lane.quota.available is not None and lane.quota.available < lane.largest_instance_count <= lane.quota.limit
        ):
            yield f"{lane.quota.in_use} of {lane.quota.limit} {lane.instance_type} are in use: runs wait for them"
        warm_pool = quotas.get(warm_pool_quota(lane.instance_type).name)
        if suite.warm_pool_seconds and (warm_pool is None or not warm_pool.limit):
            yield f"no warm pool quota for {lane.instance_type}: its jobs run, but instances are not kept warm"


def _fallback_note(lane: NotedLane) -> Iterator[str]:
    if lane.fallback_prices and lane.price:
        others = " or ".join(price.instance_type for price in lane.fallback_prices)
        dearest = max(price.usd_per_hour for price in (lane.price, *lane.fallback_prices))
        yield (
            f"runs on {lane.instance_type} may go to {others} where it is short:"
            f" what they may cost is at {exact_usd_text(dearest)}/h, the dearest"
        )
