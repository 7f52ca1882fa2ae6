"""Lanes: jobs that share an instance type, and how many of them may be in progress at once."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import accumulate, groupby

from traindyno.core.costs.prices import Price, PriceList
from traindyno.core.jobs.job import Job
from traindyno.core.planning.expectation import Expectation, expect
from traindyno.core.planning.history import Histories
from traindyno.core.planning.job_terms import run_terms
from traindyno.core.planning.planned_jobs import Rounds
from traindyno.core.planning.quotas import (
    QuotaReading,
    QuotaReadings,
    instance_quota,
    is_host_shared,
)
from traindyno.core.planning.waves import wave_counts, wave_size
from traindyno.core.run.settings import Settings
from traindyno.core.suite.choices import Purchase
from traindyno.core.suite.runs import round_of
from traindyno.core.suite.suite import Run, Suite

CONCURRENCY_LIMIT = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    lane_id: str
    instance_type: str
    purchase: Purchase
    jobs: tuple[Job, ...]

    @property
    def runs(self) -> tuple[Run, ...]:
        return tuple(run for job in self.jobs for run in job.runs)

    @property
    def rounds(self) -> tuple[tuple[Job, ...], ...]:
        """The lane's jobs by round. The next round begins when the one before it has ended."""
        return tuple(
            tuple(of_round)
            for _, of_round in groupby(self.jobs, key=lambda job: round_of(job.runs[0]))
        )

    @property
    def largest(self) -> Settings:
        """The settings of the job with the most instances."""
        return max(
            (job.settings for job in self.jobs), key=lambda settings: settings.instance_count
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneDemand:
    """Instances that the jobs of a lane need.

    ``sizes`` are the instances of each job. ``available`` are the instances that the lane may hold;
    None where unknown.
    """

    lane_id: str
    sizes: tuple[int, ...]
    available: int | None
    shares_host: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Concurrency:
    """The number of parallel lanes, and of parallel jobs in each lane.

    ``instances``: how many instances each lane may hold together; None where jobs are counted
    instead.
    """

    lanes: int
    runs: dict[str, int]
    instances: dict[str, int | None]


def lane_id_of(instance_type: str, purchase: Purchase) -> str:
    return f"{instance_type.replace('.', '-')}-{purchase.value}"


def split_lanes(jobs: Iterable[Job], purchase: Purchase) -> tuple[Lane, ...]:
    """One lane for each instance type, in the order of their names; a lane keeps the order of the
    jobs.
    """
    by_type: dict[str, list[Job]] = {}
    for job in jobs:
        by_type.setdefault(job.settings.instance, []).append(job)
    return tuple(
        Lane(
            lane_id=lane_id_of(name, purchase),
            instance_type=name,
            purchase=purchase,
            jobs=tuple(of_type),
        )
        for name, of_type in sorted(by_type.items())
    )


def share_instances(demands: Sequence[LaneDemand], account_available: int | None) -> Concurrency:
    """Divide the instances among the lanes.

    The largest job of each lane counts, so that any jobs fit together. Spare instances are shared
    round-robin.
    """
    peaks = {
        demand.lane_id: list(accumulate(sorted(demand.sizes, reverse=True))) for demand in demands
    }
    lanes = _lanes_at_once(demands, peaks, account_available)
    runs = {demand.lane_id: 1 for demand in demands}
    grew = True
    while grew:
        grew = False
        for demand in demands:
            more = {**runs, demand.lane_id: runs[demand.lane_id] + 1}
            peak = peaks[demand.lane_id]
            most = more[demand.lane_id]
            if (
                demand.shares_host
                or demand.available is None
                or most > min(len(peak), CONCURRENCY_LIMIT)
            ):
                continue
            largest = sorted(
                (peaks[lane_id][count - 1] for lane_id, count in more.items()), reverse=True
            )[:lanes]
            fits_account = account_available is None or sum(largest) <= account_available
            if peak[most - 1] <= demand.available and fits_account:
                runs = more
                grew = True
    return Concurrency(
        lanes=lanes,
        runs=runs,
        instances=_spare_instances(demands, peaks, runs, lanes, account_available),
    )


def _spare_instances(
    demands: Sequence[LaneDemand],
    peaks: dict[str, list[int]],
    runs: dict[str, int],
    lanes: int,
    account_available: int | None,
) -> dict[str, int | None]:
    """Instances that each lane may hold, one lane after another, besides the instances of the lanes
    that run at the same time.
    """
    held = {lane_id: peaks[lane_id][count - 1] for lane_id, count in runs.items()}
    allowed: dict[str, int | None] = {}
    for demand in demands:
        if demand.shares_host or demand.available is None:
            allowed[demand.lane_id] = None
            continue
        others = sorted(
            (held[lane_id] for lane_id in held if lane_id != demand.lane_id), reverse=True
        )
        account = (
            demand.available
            if account_available is None
            else account_available - sum(others[: lanes - 1])
        )
        held[demand.lane_id] = max(held[demand.lane_id], min(demand.available, account))
        allowed[demand.lane_id] = held[demand.lane_id]
    return allowed


def _lanes_at_once(
    demands: Sequence[LaneDemand], peaks: dict[str, list[int]], account_available: int | None
) -> int:
    if sum(demand.shares_host for demand in demands) > 1:
        return 1
    firsts = sorted((peak[0] for peak in peaks.values()), reverse=True)
    if account_available is None:
        return max(1, len(firsts))
    return max(1, sum(total <= account_available for total in accumulate(firsts)))


@dataclass(frozen=True, slots=True, kw_only=True)
class LanePlan:
    """The runs of one instance type."""

    lane_id: str
    instance_type: str
    purchase: Purchase
    run_count: int
    largest_instance_count: int
    #: Jobs in progress at once.
    concurrency: int
    waves: int
    #: Jobs that carry the runs.
    job_count: int
    quota: QuotaReading | None
    price: Price | None
    #: Cost if each job takes one attempt to its time limit, and the longest stop and upload.
    one_attempt_usd: Decimal | None
    #: Cost if each job takes all attempts so, with warm instances where the suite asks for them.
    worst_case_usd: Decimal | None
    #: Cost and time, by what earlier runs of these cells showed.
    expected: Expectation = field(default_factory=Expectation)
    #: Size of the lane's waves in instances; None if ``concurrency`` counts runs.
    instances_at_once: int | None = None


def plan_lane(
    suite: Suite,
    lane: Lane,
    typical: Rounds,
    *,
    prices: PriceList,
    quotas: QuotaReadings,
    histories: Histories,
    concurrency: Concurrency,
) -> LanePlan:
    """Plan the jobs of one lane.

    Args:
        typical: Expected rounds of its jobs, of all rounds that may be started.
        histories: Earlier runs by cell id.
    """
    price = prices.get(lane.instance_type)
    at_once = concurrency.runs[lane.lane_id]
    most_at_once = concurrency.instances[lane.lane_id]
    instances_at_once = wave_size(lane.rounds[0], concurrency=at_once, instances=most_at_once)
    usd_per_hour = price.usd_per_hour if price else None
    attempts = [most_attempts(job, suite) for job in lane.jobs]
    terms = run_terms(lane.largest, suite)
    once = replace(terms, instance_count=sum(job.instance_count for job in lane.jobs))
    of_all = (count * job.instance_count for count, job in zip(attempts, lane.jobs, strict=True))
    worst = replace(terms, instance_count=sum(of_all))
    return LanePlan(
        lane_id=lane.lane_id,
        instance_type=lane.instance_type,
        purchase=lane.purchase,
        run_count=len(lane.runs),
        largest_instance_count=lane.largest.instance_count,
        concurrency=at_once,
        job_count=len(lane.jobs),
        waves=sum(wave_counts(lane.rounds, concurrency=at_once, instances=instances_at_once)),
        instances_at_once=instances_at_once,
        quota=quotas.get(instance_quota(lane.instance_type, suite.purchase).name),
        price=price,
        one_attempt_usd=None if usd_per_hour is None else once.worst_case_usd(usd_per_hour),
        worst_case_usd=None if usd_per_hour is None else worst.worst_case_usd(usd_per_hour),
        expected=expect(
            typical,
            histories,
            usd_per_hour=usd_per_hour,
            concurrency=at_once,
            instances=instances_at_once,
            confirm=suite.measurement.confirm,
        ),
    )


def most_attempts(job: Job, suite: Suite) -> int:
    """An attempt in which a run of a shared job ends is not one of ``max_attempts``."""
    return suite.limits.max_attempts + len(job.runs) - 1


def write_notes(lanes: Sequence[LanePlan]) -> Iterator[str]:
    """Notes on the lanes: unknown quotas, and instances in use."""
    for lane in lanes:
        if is_host_shared(lane.instance_type):
            continue
        if lane.quota is not None and lane.quota.is_not_listed:
            continue
        if lane.quota is None or lane.quota.limit is None:
            why = (
                f"; {lane.quota.unknown_because}"
                if lane.quota and lane.quota.unknown_because
                else ""
            )
            yield (
                f"the quota for {lane.instance_type} is unknown: its runs start one at a time{why}"
            )
        elif (
            lane.quota.available is not None
            and lane.quota.available < lane.largest_instance_count <= lane.quota.limit
        ):
            yield (
                f"{lane.quota.in_use} of {lane.quota.limit} {lane.instance_type} are in use: runs "
                "wait for them"
            )
