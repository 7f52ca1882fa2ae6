"""The jobs of a plan: what each carries, and how many there are of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from traindyno.core.jobs.job import Job
from traindyno.core.planning.history import Histories
from traindyno.core.planning.job_terms import run_terms
from traindyno.core.planning.jobs import NO_OTHER, TOO_LONG, group_key, why_alone
from traindyno.core.planning.rounds import most_rounds
from traindyno.core.suite.suite import Cell, Suite


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedJob:
    """What one job of each trial carries; in a race, one of the first round or of a further one."""

    #: In the order of a first job, drawn from the execution's id.
    cell_ids: tuple[str, ...]
    instance: str
    instance_count: int
    #: Until its time limit, with the longest stop and upload.
    longest_seconds: int
    #: Why its only run shares it with none; None if several runs share it.
    why_alone: str | None
    #: How many there are.
    count: int
    #: Of a race, after its first round: there are at most so many jobs, with at most so many cells.
    is_further: bool = False
    #: Of each cell in the job.
    runs: int = 1


def planned_jobs(suite: Suite, cells: Sequence[Cell], execution_id: str, histories: Histories) -> list[PlannedJob]:
    """The jobs of the first trial. Those of other trials carry the same cells, unless these need several jobs: they are
    then drawn again.
    """
    first, *further = most_rounds(suite, cells, execution_id, histories)
    if not suite.search.is_race:
        first = tuple(job for job in first if job.trial == 1)
        return [_planned(job, suite, cells, count=suite.measurement.trials) for job in first]
    again = [_planned(job, suite, cells, count=len(further), is_further=True) for job in (further or [()])[0]]
    return [*(_planned(job, suite, cells, count=1) for job in first), *again]


def _planned(job: Job, suite: Suite, cells: Sequence[Cell], *, count: int, is_further: bool = False) -> PlannedJob:
    own = job.runs[0].cell
    can_share = (cell for cell in cells if why_alone(cell, suite) is None)
    alike = [cell for cell in can_share if group_key(cell, suite) == group_key(own, suite)]
    otherwise = TOO_LONG if len(alike) > 1 and not is_further else NO_OTHER
    cell_ids = tuple(dict.fromkeys(run.cell.cell_id for run in job.runs))
    return PlannedJob(
        cell_ids=cell_ids,
        instance=job.settings.instance,
        instance_count=job.instance_count,
        longest_seconds=run_terms(job.settings, suite).longest_seconds,
        why_alone=None if job.is_shared else why_alone(own, suite) or otherwise,
        count=count,
        is_further=is_further,
        runs=len(job.runs) // len(cell_ids),
    )
