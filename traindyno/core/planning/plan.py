"""The plan of a suite: its lanes, what they may cost and how long they may take, and what is refused, all at once."""

from dataclasses import dataclass
from decimal import Decimal
from heapq import heappop, heappush
from math import ceil

from traindyno.core.costs.prices import Price, PriceList, cost_usd
from traindyno.core.planning.lanes import Concurrency, Lane, LaneDemand, share_instances, split_lanes
from traindyno.core.planning.quotas import (
    QuotaReading,
    QuotaReadings,
    account_quota,
    instance_quota,
    is_host_shared,
    warm_pool_quota,
)
from traindyno.core.planning.refusals import Refusal, refuse_hours, refuse_prices, refuse_quotas
from traindyno.core.suites.cells import expand_cells
from traindyno.core.suites.runs import trial_runs
from traindyno.core.suites.suite import Cell, Purchase, Suite

SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class LanePlan:
    """``one_attempt_usd``: every run once, to its time limit.

    ``worst_case_usd``: every attempt of every run so, its instances kept warm afterwards where the suite asks for that.
    """

    lane_id: str
    instance_type: str
    purchase: Purchase
    run_count: int
    largest_instance_count: int
    concurrency: int
    waves: int
    quota: QuotaReading | None
    price: Price | None
    one_attempt_usd: Decimal | None
    worst_case_usd: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    execution_id: str
    cells: tuple[Cell, ...]
    run_count: int
    lanes: tuple[LanePlan, ...]
    lanes_at_once: int
    account_quota: QuotaReading | None
    one_attempt_usd: Decimal | None
    worst_case_usd: Decimal | None
    one_attempt_hours: Decimal
    worst_case_hours: Decimal
    refusals: tuple[Refusal, ...]
    notes: tuple[str, ...]


def plan_suite(suite: Suite, *, execution_id: str, prices: PriceList, quotas: QuotaReadings) -> Plan:
    """``prices`` by instance type; ``quotas`` by name, as ``needed_quotas`` lists them. What is missing is unknown."""
    cells = expand_cells(suite)
    runs = trial_runs(execution_id, cells, range(1, suite.measurement.trials + 1))
    lanes = split_lanes(runs, suite.purchase)
    account = quotas.get(account_quota(suite.purchase).name)
    concurrency = plan_concurrency(suite, lanes, quotas)
    lane_plans = tuple(_plan_lane(suite, lane, prices, quotas, concurrency.runs[lane.lane_id]) for lane in lanes)
    job_seconds = suite.limits.max_job_seconds
    attempt_seconds = suite.limits.max_attempts * (job_seconds + suite.limits.max_pending_seconds)
    return Plan(
        execution_id=execution_id,
        cells=cells,
        run_count=len(runs),
        lanes=lane_plans,
        lanes_at_once=concurrency.lanes,
        account_quota=account,
        one_attempt_usd=_sum_known([lane.one_attempt_usd for lane in lane_plans]),
        worst_case_usd=_sum_known([lane.worst_case_usd for lane in lane_plans]),
        one_attempt_hours=_hours(lane_plans, concurrency.lanes, job_seconds),
        worst_case_hours=_hours(lane_plans, concurrency.lanes, attempt_seconds),
        refusals=(*refuse_prices(suite, lanes, prices), *refuse_hours(suite), *refuse_quotas(suite, lanes, quotas)),
        notes=tuple(_notes(suite, lane_plans, quotas)),
    )


def plan_concurrency(suite: Suite, lanes: tuple[Lane, ...], quotas: QuotaReadings) -> Concurrency:
    demands = [_demand(suite, lane, quotas) for lane in lanes]
    remote = [demand for demand in demands if not demand.shares_host]
    account = quotas.get(account_quota(suite.purchase).name) if remote else None
    return share_instances(demands, account.available if account else None)


def _demand(suite: Suite, lane: Lane, quotas: QuotaReadings) -> LaneDemand:
    reading = quotas.get(instance_quota(lane.instance_type, suite.purchase).name)
    return LaneDemand(
        lane_id=lane.lane_id,
        sizes=tuple(run.cell.settings.instance_count for run in lane.runs),
        available=reading.available if reading else None,
        shares_host=is_host_shared(lane.instance_type),
    )


def _plan_lane(suite: Suite, lane: Lane, prices: PriceList, quotas: QuotaReadings, concurrency: int) -> LanePlan:
    price = prices.get(lane.instance_type)
    instances = sum(run.cell.settings.instance_count for run in lane.runs)
    job_seconds = suite.limits.max_job_seconds
    worst_seconds = suite.limits.max_attempts * (job_seconds + suite.warm_pool_seconds)
    return LanePlan(
        lane_id=lane.lane_id,
        instance_type=lane.instance_type,
        purchase=lane.purchase,
        run_count=len(lane.runs),
        largest_instance_count=lane.largest.instance_count,
        concurrency=concurrency,
        waves=ceil(len(lane.runs) / concurrency),
        quota=quotas.get(instance_quota(lane.instance_type, suite.purchase).name),
        price=price,
        one_attempt_usd=cost_usd(job_seconds, instances, price.usd_per_hour) if price else None,
        worst_case_usd=cost_usd(worst_seconds, instances, price.usd_per_hour) if price else None,
    )


def _sum_known(amounts: list[Decimal | None]) -> Decimal | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known, Decimal(0)) if len(known) == len(amounts) else None


def _hours(lanes: tuple[LanePlan, ...], lanes_at_once: int, run_seconds: int) -> Decimal:
    """Lanes start in order, each as soon as one of those in progress ends."""
    ends: list[int] = []
    for lane in lanes:
        begin = heappop(ends) if len(ends) == lanes_at_once else 0
        heappush(ends, begin + lane.waves * run_seconds)
    return Decimal(max(ends)) / SECONDS_PER_HOUR


def _notes(suite: Suite, lanes: tuple[LanePlan, ...], quotas: QuotaReadings) -> list[str]:
    notes = []
    for lane in lanes:
        if is_host_shared(lane.instance_type):
            continue
        if lane.quota is None or lane.quota.limit is None:
            notes.append(f"the quota for {lane.instance_type} is unknown: its runs go one at a time")
        elif (
            lane.quota.available is not None and lane.quota.available < lane.largest_instance_count <= lane.quota.limit
        ):
            notes.append(
                f"{lane.quota.in_use} of {lane.quota.limit} {lane.instance_type} are in use: runs wait for them"
            )
        warm_pool = quotas.get(warm_pool_quota(lane.instance_type).name)
        if suite.warm_pool_seconds and (warm_pool is None or not warm_pool.limit):
            notes.append(f"no warm pool quota for {lane.instance_type}: its jobs run, but instances are not kept warm")
    return notes
