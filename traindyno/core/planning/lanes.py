"""Lanes: jobs that share an instance type, and how many of them may be in progress at once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

from traindyno.core.jobs.job import Job
from traindyno.core.suite.choices import Purchase
from traindyno.core.suite.runs import round_of
from traindyno.core.suite.settings import Settings
from traindyno.core.suite.suite import Run

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
        """Its jobs by round; those of the next one begin when the round has ended."""
        return tuple(tuple(of_round) for _, of_round in groupby(self.jobs, key=lambda job: round_of(job.runs[0])))

    @property
    def largest(self) -> Settings:
        """The settings of the job with the most instances."""
        return max((job.settings for job in self.jobs), key=lambda settings: settings.instance_count)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneDemand:
    """``sizes``: instances of each job. ``available``: instances that the lane may hold; None where unknown."""

    lane_id: str
    sizes: tuple[int, ...]
    available: int | None
    shares_host: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Concurrency:
    """The number of parallel lanes, and of parallel jobs in each lane.

    ``instances``: how many instances each lane may hold together; None where jobs are counted instead.
    """

    lanes: int
    runs: dict[str, int]
    instances: dict[str, int | None]


def lane_id_of(instance_type: str, purchase: Purchase) -> str:
    return f"{instance_type.replace('.', '-')}-{purchase.value}"


def split_lanes(jobs: Iterable[Job], purchase: Purchase) -> tuple[Lane, ...]:
    """One lane for each instance type, in the order of their names; a lane keeps the order of the jobs."""
    by_type: dict[str, list[Job]] = {}
    for job in jobs:
        by_type.setdefault(job.settings.instance, []).append(job)
    return tuple(
        Lane(lane_id=lane_id_of(name, purchase), instance_type=name, purchase=purchase, jobs=tuple(of_type))
        for name, of_type in sorted(by_type.items())
    )


def share_instances(demands: Sequence[LaneDemand], account_available: int | None) -> Concurrency:
    """Counts the largest job of each lane, so that any jobs fit together. Spare instances are shared round-robin."""
    peaks = {demand.lane_id: list(accumulate(sorted(demand.sizes, reverse=True))) for demand in demands}
    lanes = _lanes_at_once(demands, peaks, account_available)
    runs = {demand.lane_id: 1 for demand in demands}
    grew = True
    while grew:
        grew = False
        for demand in demands:
            more = {**runs, demand.lane_id: runs[demand.lane_id] + 1}
            if _fits_lane(demand, peaks[demand.lane_id], more[demand.lane_id]) and _fits_account(
                more, peaks, lanes, account_available
            ):
                runs, grew = more, True
    return Concurrency(
        lanes=lanes, runs=runs, instances=_spare_instances(demands, peaks, runs, lanes, account_available)
    )


def _spare_instances(
    demands: Sequence[LaneDemand],
    peaks: dict[str, list[int]],
    runs: dict[str, int],
    lanes: int,
    account_available: int | None,
) -> dict[str, int | None]:
    """What a lane may hold besides the instances of the lanes that run at the same time, one lane after another."""
    held = {lane_id: peaks[lane_id][count - 1] for lane_id, count in runs.items()}
    allowed: dict[str, int | None] = {}
    for demand in demands:
        if demand.shares_host or demand.available is None:
            allowed[demand.lane_id] = None
            continue
        others = sorted((held[lane_id] for lane_id in held if lane_id != demand.lane_id), reverse=True)
        account = demand.available if account_available is None else account_available - sum(others[: lanes - 1])
        held[demand.lane_id] = max(held[demand.lane_id], min(demand.available, account))
        allowed[demand.lane_id] = held[demand.lane_id]
    return allowed


def _lanes_at_once(demands: Sequence[LaneDemand], peaks: dict[str, list[int]], account_available: int | None) -> int:
    if sum(demand.shares_host for demand in demands) > 1:
        return 1
    firsts = sorted((peak[0] for peak in peaks.values()), reverse=True)
    if account_available is None:
        return max(1, len(firsts))
    return max(1, sum(total <= account_available for total in accumulate(firsts)))


def _fits_lane(demand: LaneDemand, peak: list[int], concurrency: int) -> bool:
    if demand.shares_host or demand.available is None or concurrency > min(len(peak), CONCURRENCY_LIMIT):
        return False
    return peak[concurrency - 1] <= demand.available


def _fits_account(runs: dict[str, int], peaks: dict[str, list[int]], lanes: int, account_available: int | None) -> bool:
    if account_available is None:
        return True
    largest = sorted((peaks[lane_id][count - 1] for lane_id, count in runs.items()), reverse=True)[:lanes]
    return sum(largest) <= account_available
