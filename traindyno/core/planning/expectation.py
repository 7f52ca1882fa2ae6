"""The expected cost and time of runs, from earlier runs of their cells; None without earlier
runs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from heapq import heapify, heapreplace

from traindyno.core.costs.prices import SECONDS_PER_HOUR, cost_usd, sum_known
from traindyno.core.jobs.job import Job
from traindyno.core.planning.history import CellHistory, Histories, expect_job
from traindyno.core.planning.waves import fill_waves
from traindyno.core.suite.suite import Confirm


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """Cost and time that a suite is expected to take.

    ``usd`` and ``hours`` are None unless every cell has earlier runs; ``usd_of_known`` is the cost
    of the cells that have. ``past_runs`` counts the earlier runs used.
    """

    usd: Decimal | None = None
    hours: Decimal | None = None
    usd_of_known: Decimal | None = None
    cells: int = 0
    known_cells: int = 0
    past_runs: int = 0
    is_simulated: bool = False


def expect(
    rounds: Sequence[Sequence[Job]],
    histories: Histories,
    *,
    usd_per_hour: Decimal | None,
    concurrency: int,
    instances: int | None = None,
    confirm: Confirm | None = None,
) -> Expectation:
    """The expectation of one lane.

    ``instances`` are the instances that its waves fill; otherwise ``concurrency`` jobs are in
    progress at once.
    """
    jobs = [job for of_round in rounds for job in of_round]
    cell_ids = list(dict.fromkeys(run.cell.cell_id for job in jobs for run in job.runs))
    known = [histories[cell_id] for cell_id in cell_ids if cell_id in histories]
    is_whole = len(known) == len(cell_ids)
    usd = None
    if usd_per_hour is not None and known:
        costs = [
            cost_usd(
                Decimal(str(expect_job(carried).billable_seconds)), job.instance_count, usd_per_hour
            )
            for job in jobs
            if (carried := _carried(job, histories, confirm))
        ]
        usd = sum(costs, Decimal(0))
    return Expectation(
        usd=usd if is_whole else None,
        hours=sum(
            (
                _round_hours(jobs_of_round, histories, concurrency, instances, confirm)
                for jobs_of_round in rounds
            ),
            Decimal(0),
        )
        if is_whole
        else None,
        usd_of_known=usd,
        cells=len(cell_ids),
        known_cells=len(known),
        past_runs=sum(history.run_count for history in known),
        is_simulated=any(history.is_simulated for history in known),
    )


def expect_all(lanes: Sequence[Expectation], *, hours: Decimal | None) -> Expectation:
    """The expectation of a whole plan; ``hours`` depend on which lanes run at once."""
    return Expectation(
        usd=sum_known([lane.usd for lane in lanes]),
        hours=hours,
        usd_of_known=_sum(lane.usd_of_known for lane in lanes),
        cells=sum(lane.cells for lane in lanes),
        known_cells=sum(lane.known_cells for lane in lanes),
        past_runs=sum(lane.past_runs for lane in lanes),
        is_simulated=any(lane.is_simulated for lane in lanes),
    )


def _carried(job: Job, histories: Histories, confirm: Confirm | None) -> list[CellHistory]:
    histories_of_job = [
        histories[run.cell.cell_id] for run in job.runs if run.cell.cell_id in histories
    ]
    if confirm is None or job.runs[0].confirming_steps is None:
        return histories_of_job
    return [
        replace(
            history,
            seconds=history.overhead_seconds + 60 * confirm.minutes,
            billable_seconds=history.overhead_billable_seconds + 60 * confirm.minutes,
        )
        for history in histories_of_job
    ]


def _round_hours(
    jobs: Sequence[Job],
    histories: Histories,
    concurrency: int,
    instances: int | None,
    confirm: Confirm | None,
) -> Decimal:
    def seconds(job: Job) -> float:
        return expect_job(_carried(job, histories, confirm)).seconds

    if instances is None:
        return _hours(map(seconds, jobs), concurrency)
    waves = fill_waves(jobs, instances)
    return Decimal(str(sum(max(map(seconds, wave)) for wave in waves))) / SECONDS_PER_HOUR


def _hours(job_seconds: Iterable[float], concurrency: int) -> Decimal:
    """Hours of jobs that start in order, each as soon as a running one ends."""
    ends = [0.0] * concurrency
    heapify(ends)
    for seconds in job_seconds:
        heapreplace(ends, ends[0] + seconds)
    return Decimal(str(max(ends))) / SECONDS_PER_HOUR


def _sum(amounts: Iterable[Decimal | None]) -> Decimal | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known, Decimal(0)) if known else None
