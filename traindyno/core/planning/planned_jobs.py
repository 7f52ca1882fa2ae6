"""The jobs that a suite is planned with: all of a grid's, the most and the usual ones of a race."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from traindyno.core.jobs.job import Job
from traindyno.core.planning.history import Histories
from traindyno.core.planning.job_terms import run_terms
from traindyno.core.planning.jobs import (
    NO_OTHER,
    TOO_LONG,
    group_key,
    runs_again,
    share_jobs,
    why_alone,
)
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.runs import make_runs, trial_runs
from traindyno.core.suite.suite import Suite
from traindyno.figures.in_job.race import MOST_CONTENDERS
from traindyno.figures.in_job.run_scatter import run_scatter

#: The median race of published surfaces needs one, of one group; a second one is for the margin.
TYPICAL_CONTENDERS = 2

Rounds = tuple[tuple[Job, ...], ...]


def most_rounds(suite: Suite, execution_id: str, histories: Histories) -> Rounds:
    """The most jobs that the suite starts, by round, if no result is lost."""
    groups: dict[object, list[Cell]] = {}
    for cell in suite.cells:
        groups.setdefault(group_key(cell, suite), []).append(cell)
    leaders = [cell for group in groups.values() for cell in group[:TYPICAL_CONTENDERS]]
    confirming = _confirming(suite, leaders, execution_id, histories)
    if not suite.search.is_race:
        return (
            share_jobs(trial_runs(execution_id, suite.cells, _trials(suite)), suite, histories),
            *confirming,
        )
    first = _first(suite, execution_id, histories)
    again = [run.cell for job in first for run in job.runs[:MOST_CONTENDERS]]
    return (
        first,
        *_further(suite, again, execution_id, histories, passes=_passes(first)),
        *confirming,
    )


def typical_rounds(suite: Suite, execution_id: str, histories: Histories) -> Rounds:
    """Rounds of a race in which the leaders of its largest group run again once: in its first job
    if that may run cells again, or else in a further one.
    """
    if not suite.search.is_race:
        return most_rounds(suite, execution_id, histories)
    first = _first(suite, execution_id, histories)
    groups: dict[object, list[Cell]] = {}
    for run in chain.from_iterable(job.runs for job in first):
        groups.setdefault(group_key(run.cell, suite), []).append(run.cell)
    likely = max(
        (job for job in first if runs_again(job, suite)),
        key=lambda job: len(job.runs),
        default=None,
    )
    of_group = (
        max(groups.values(), key=len) if likely is None else [run.cell for run in likely.runs]
    )
    again = of_group[:TYPICAL_CONTENDERS]
    if likely is None:
        rounds = (
            first,
            *_further(suite, again, execution_id, histories, passes=_passes(first))[:1],
        )
    else:
        further = (run for run in runs_again(likely, suite) if run.cell in again)
        longer = replace(likely, runs=(*likely.runs, *further))
        rounds = (tuple(longer if job is likely else job for job in first),)
    return (*rounds, *_confirming(suite, again, execution_id, histories))


def _confirming(
    suite: Suite, cells: Sequence[Cell], execution_id: str, histories: Histories
) -> Rounds:
    """The round of the long runs, with what is known of them before there are trials."""
    if suite.measurement.confirm is None:
        return ()
    runs = make_runs(
        execution_id,
        [(cell, suite.measurement.trials + 1) for cell in cells],
        round_number=suite.measurement.trials + 1,
    )
    return (share_jobs([replace(run, confirming_steps=1) for run in runs], suite, histories),)


def _first(suite: Suite, execution_id: str, histories: Histories) -> tuple[Job, ...]:
    return share_jobs(trial_runs(execution_id, suite.cells, [1]), suite, histories)


def _passes(first: Sequence[Job]) -> int:
    """How often a contender runs in a further job."""
    scatter = run_scatter(first[0].settings.instance)
    return scatter.passes if any(len(job.runs) > 1 for job in first) else 1


def _further(
    suite: Suite, cells: Sequence[Cell], execution_id: str, histories: Histories, *, passes: int
) -> Rounds:
    left = _trials(suite)[1:]
    rounds = []
    for number, begin in enumerate(range(0, len(left), passes), start=2):
        trials = [(cell, trial) for cell in cells for trial in left[begin : begin + passes]]
        runs = make_runs(execution_id, trials, round_number=number)
        rounds.append(share_jobs(runs, suite, histories))
    return tuple(rounds)


def _trials(suite: Suite) -> range:
    return range(1, suite.measurement.trials + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedJob:
    """What one job of each trial carries; in a race, one of the first round or of a further one."""

    #: Cells in the order of a first job, drawn from the execution's id.
    cell_ids: tuple[str, ...]
    instance: str
    instance_count: int
    #: Seconds until its time limit, with the longest stop and upload.
    longest_seconds: int
    #: Why its only run has a job of its own; None if several runs share it.
    why_alone: str | None
    #: Number of such jobs.
    count: int
    #: Whether it is of a later round of a race, so that ``count`` and the cells are the most.
    is_further: bool = False
    #: Trials of each cell in the job.
    runs: int = 1


def planned_jobs(suite: Suite, execution_id: str, histories: Histories) -> list[PlannedJob]:
    """The jobs of the first trial.

    Those of other trials carry the same cells, unless these need several jobs: they are then drawn
    again. Long runs that confirm are no part of them.
    """
    first, *further = most_rounds(suite, execution_id, histories)
    further = further[:-1] if suite.measurement.confirm else further
    if not suite.search.is_race:
        first = tuple(job for job in first if job.trial == 1)
        return [_planned(job, suite, count=suite.measurement.trials) for job in first]
    again = [
        _planned(job, suite, count=len(further), is_further=True) for job in (further or [()])[0]
    ]
    return [*(_planned(job, suite, count=1) for job in first), *again]


def _planned(job: Job, suite: Suite, *, count: int, is_further: bool = False) -> PlannedJob:
    own = job.runs[0].cell
    can_share = (cell for cell in suite.cells if why_alone(cell, suite) is None)
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
