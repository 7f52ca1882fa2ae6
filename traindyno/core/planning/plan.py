"""The plan of a suite: its lanes, their expected and worst-case cost and time, and the reasons to
refuse the suite.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from heapq import heappop, heappush
from itertools import chain, zip_longest
from typing import Any

from traindyno.core.costs.prices import SECONDS_PER_HOUR, Price, PriceList, sum_known
from traindyno.core.documents.stored import from_document, to_document
from traindyno.core.documents.versions import Format
from traindyno.core.planning.cell_notes import (
    composition_notes,
    evaluation_note,
    learning_note,
    loader_notes,
)
from traindyno.core.planning.expectation import Expectation, expect_all
from traindyno.core.planning.history import CellHistory, Histories
from traindyno.core.planning.lanes import (
    Concurrency,
    Lane,
    LaneDemand,
    LanePlan,
    most_attempts,
    plan_lane,
    share_instances,
    split_lanes,
    write_notes,
)
from traindyno.core.planning.memory import CellMemory, too_large
from traindyno.core.planning.planned_jobs import most_rounds, typical_rounds
from traindyno.core.planning.preparation_plan import (
    PreparationPlan,
    plan_preparation,
    refuse_preparation,
)
from traindyno.core.planning.quotas import (
    QuotaReadings,
    account_quota,
    instance_quota,
    is_host_shared,
)
from traindyno.core.planning.refusals import (
    refuse_arguments,
    refuse_hours,
    refuse_prices,
    refuse_quotas,
    refuse_searches,
)
from traindyno.core.planning.waves import wave_counts
from traindyno.core.run.tokens import TokenSet
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.suite import Suite
from traindyno.figures.hosts import HostPriors

STORED_PLAN = Format(name="stored plan", version=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Plan of a suite.

    ``history`` and ``host_priors`` are what earlier runs showed when PlanSuite read them.
    ``memory`` has the estimated cells, in a plan of a client that asks for them, and
    ``first_batches`` what searches of the batch probe first, by cell id, in an execution's plan.
    """

    execution_id: str
    cells: tuple[Cell, ...]
    run_count: int
    lanes: tuple[LanePlan, ...]
    lanes_at_once: int
    preparation: PreparationPlan | None = None
    one_attempt_usd: Decimal | None
    worst_case_usd: Decimal | None
    one_attempt_hours: Decimal
    worst_case_hours: Decimal
    refusals: tuple[str, ...]
    notes: tuple[str, ...]
    expected: Expectation = field(default_factory=Expectation)
    history: tuple[CellHistory, ...] = ()
    memory: tuple[CellMemory, ...] = ()
    host_priors: HostPriors | None = None
    first_batches: Mapping[str, int] = field(default_factory=dict)


def stored_plan(plan: Plan) -> dict[str, Any]:
    """Document of a plan with its version; ``read_stored_plan`` reads it back."""
    return STORED_PLAN.mark(to_document(plan))


def read_stored_plan(document: Mapping[str, Any]) -> Plan:
    """Read a stored plan. Raises VersionUnknown."""
    return from_document(STORED_PLAN.read(document), Plan)


def plan_suite(
    suite: Suite,
    *,
    execution_id: str,
    prices: PriceList,
    quotas: QuotaReadings,
    histories: Histories,
    tokens: Sequence[TokenSet] | None = None,
    memory: Sequence[CellMemory] = (),
) -> Plan:
    """Plan a suite. A missing price, quota or history is unknown.

    Args:
        prices: Prices by instance type.
        quotas: Quotas by name, as ``needed_quotas`` lists them.
        histories: Earlier runs by cell id.
        tokens: Token sets with what is ready. None: no token set is ready.
    """
    most = most_rounds(suite, execution_id, histories)
    lanes = split_lanes(chain.from_iterable(most), suite.purchase)
    rounds = typical_rounds(suite, execution_id, histories)
    typical = split_lanes(chain.from_iterable(rounds), suite.purchase)
    concurrency = plan_concurrency(suite, lanes, quotas)
    plan_one = partial(
        plan_lane, suite, prices=prices, quotas=quotas, histories=histories, concurrency=concurrency
    )
    lane_plans = tuple(
        plan_one(lane, expected.rounds) for lane, expected in zip(lanes, typical, strict=True)
    )
    preparation = plan_preparation(suite, prices=prices, quotas=quotas, tokens=tokens)
    parts = _parts(lane_plans, preparation)
    once_hours, worst_hours = _hours_of_runs(suite, lanes, lane_plans, concurrency.lanes)
    limits = suite.limits
    preparing_hours = _preparation_hours(preparation, limits.max_pending_seconds)
    return Plan(
        execution_id=execution_id,
        cells=suite.cells,
        run_count=sum(lane.run_count for lane in lane_plans),
        lanes=lane_plans,
        lanes_at_once=concurrency.lanes,
        preparation=preparation,
        one_attempt_usd=sum_known([part.one_attempt_usd for part in parts]),
        worst_case_usd=sum_known([part.worst_case_usd for part in parts]),
        one_attempt_hours=once_hours + _preparation_hours(preparation, 0),
        worst_case_hours=worst_hours + limits.max_attempts * preparing_hours,
        refusals=(
            *_refusals(suite, lanes, prices, quotas),
            *refuse_preparation(suite, preparation, quotas),
            *too_large(suite.cells, memory),
        ),
        notes=_notes(suite, lane_plans),
        expected=_expected(lane_plans, concurrency.lanes),
        history=tuple(histories[cell.cell_id] for cell in suite.cells if cell.cell_id in histories),
        memory=tuple(memory),
    )


def _notes(suite: Suite, lane_plans: Sequence[LanePlan]) -> tuple[str, ...]:
    return (
        *write_notes(lane_plans),
        *loader_notes(suite.cells),
        *composition_notes(suite.cells),
        *filter(None, [learning_note(suite), evaluation_note(suite)]),
    )


def _refusals(
    suite: Suite, lanes: Sequence[Lane], prices: PriceList, quotas: QuotaReadings
) -> Iterator[str]:
    """Why the runs can't start."""
    limits = suite.limits
    yield from refuse_prices(suite, lanes, prices)
    yield from refuse_hours(
        "one job", limits.max_job_seconds, limits, shorten="limits.max_job_seconds"
    )
    yield from refuse_searches(suite)
    yield from refuse_arguments(suite)
    yield from refuse_quotas(suite, lanes, quotas)


def _hours_of_runs(
    suite: Suite, lanes: Sequence[Lane], lane_plans: Sequence[LanePlan], lanes_at_once: int
) -> tuple[Decimal, Decimal]:
    """Hours of all runs: with one attempt each, and in the worst case.

    Args:
        suite: Suite with its limits.
        lanes: The most jobs of each lane.
        lane_plans: Plan of each of the lanes.
        lanes_at_once: Lanes that run at the same time.
    """
    waves = [
        wave_counts(
            lane.rounds, concurrency=planned.concurrency, instances=planned.instances_at_once
        )
        for lane, planned in zip(lanes, lane_plans, strict=True)
    ]
    limits = suite.limits
    attempt_seconds = limits.max_job_seconds + limits.max_pending_seconds
    attempts = [max(most_attempts(job, suite) for job in lane.jobs) for lane in lanes]
    once = _suite_hours(waves, [limits.max_job_seconds for _ in lanes], lanes_at_once)
    worst = _suite_hours(waves, [count * attempt_seconds for count in attempts], lanes_at_once)
    return once, worst


def _expected(lane_plans: Sequence[LanePlan], lanes_at_once: int) -> Expectation:
    known = [lane.expected.hours for lane in lane_plans if lane.expected.hours is not None]
    hours = _hours(known, lanes_at_once) if len(known) == len(lane_plans) else None
    return expect_all([lane.expected for lane in lane_plans], hours=hours)


def plan_again(suite: Suite, priced: Plan, quotas: QuotaReadings) -> Plan:
    """The plan ``priced`` with the account's quotas; what else it was made with is unchanged."""
    plan = plan_suite(
        suite,
        execution_id=priced.execution_id,
        prices=prices_of(priced),
        quotas=quotas,
        histories={history.cell_id: history for history in priced.history},
        tokens=priced.preparation.tokens if priced.preparation else (),
    )
    return replace(
        plan,
        cells=priced.cells,
        host_priors=priced.host_priors,
        first_batches=priced.first_batches,
    )


def prices_of(plan: Plan) -> dict[str, Price]:
    """Price of each instance type that the plan was made with."""
    prices = (part.price for part in _parts(plan.lanes, plan.preparation))
    return {price.instance_type: price for price in prices if price}


def _parts(
    lanes: Sequence[LanePlan], preparation: PreparationPlan | None
) -> list[LanePlan | PreparationPlan]:
    return [*lanes, *([preparation] if preparation else [])]


def _suite_hours(
    waves: Sequence[Sequence[int]], job_seconds: Sequence[int], lanes_at_once: int
) -> Decimal:
    """Hours of all rounds.

    Args:
        waves: Waves of each lane in each round.
        job_seconds: Longest time of a job of each lane.
        lanes_at_once: Lanes that run at the same time.
    """
    total = Decimal(0)
    for of_round in zip_longest(*waves, fillvalue=0):
        seconds = [
            count * seconds_of_job
            for count, seconds_of_job in zip(of_round, job_seconds, strict=True)
        ]
        total += _hours(
            [Decimal(lane_seconds) / SECONDS_PER_HOUR for lane_seconds in seconds], lanes_at_once
        )
    return total


def plan_concurrency(suite: Suite, lanes: tuple[Lane, ...], quotas: QuotaReadings) -> Concurrency:
    readings = [
        quotas.get(instance_quota(lane.instance_type, suite.purchase).name) for lane in lanes
    ]
    demands = [
        LaneDemand(
            lane_id=lane.lane_id,
            sizes=tuple(job.instance_count for job in max(lane.rounds, key=len)),
            available=quota.available if quota else None,
            shares_host=is_host_shared(lane.instance_type),
        )
        for lane, quota in zip(lanes, readings, strict=True)
    ]
    remote = [demand for demand in demands if not demand.shares_host]
    account = quotas.get(account_quota(suite.purchase).name) if remote else None
    return share_instances(demands, account.available if account else None)


def _hours(of_lanes: Sequence[Decimal], lanes_at_once: int) -> Decimal:
    """Hours of lanes that start in order, each when one in progress ends."""
    ends: list[Decimal] = []
    for hours in of_lanes:
        begin = heappop(ends) if len(ends) == lanes_at_once else Decimal(0)
        heappush(ends, begin + hours)
    return max(ends)


def _preparation_hours(preparation: PreparationPlan | None, pending_seconds: int) -> Decimal:
    if preparation is None:
        return Decimal(0)
    return (
        Decimal(preparation.job_count * (preparation.max_seconds + pending_seconds))
        / SECONDS_PER_HOUR
    )
