"""The rounds of jobs that a suite is planned with: all of a grid's, and the most that a race can start."""

from collections.abc import Sequence
from itertools import chain

from traindyno.core.jobs.job import Job
from traindyno.core.planning.history import Histories
from traindyno.core.planning.jobs import group_key, share_jobs
from traindyno.core.search.race import MOST_CONTENDERS, PASSES
from traindyno.core.suite.runs import make_runs, trial_runs
from traindyno.core.suite.suite import Cell, Suite

#: In a race of published surfaces the median is one, of one group, in one further job; a second one is for the margin.
TYPICAL_CONTENDERS = 2

Rounds = tuple[tuple[Job, ...], ...]


def most_rounds(suite: Suite, cells: Sequence[Cell], execution_id: str, histories: Histories) -> Rounds:
    """Without results that are lost."""
    if not suite.search.is_race:
        return (share_jobs(trial_runs(execution_id, cells, _trials(suite)), suite, histories),)
    first = _first(suite, cells, execution_id, histories)
    again = [run.cell for job in first for run in job.runs[:MOST_CONTENDERS]]
    return (first, *_further(suite, again, execution_id, histories, passes=_passes(first)))


def typical_rounds(suite: Suite, cells: Sequence[Cell], execution_id: str, histories: Histories) -> Rounds:
    """Those of a race that ends with its first further job; the leader is in the largest group."""
    if not suite.search.is_race:
        return most_rounds(suite, cells, execution_id, histories)
    first = _first(suite, cells, execution_id, histories)
    groups: dict[object, list[Cell]] = {}
    for run in chain.from_iterable(job.runs for job in first):
        groups.setdefault(group_key(run.cell, suite), []).append(run.cell)
    again = max(groups.values(), key=len)[:TYPICAL_CONTENDERS]
    return (first, *_further(suite, again, execution_id, histories, passes=_passes(first))[:1])


def _first(suite: Suite, cells: Sequence[Cell], execution_id: str, histories: Histories) -> tuple[Job, ...]:
    return share_jobs(trial_runs(execution_id, cells, [1]), suite, histories)


def _passes(first: Sequence[Job]) -> int:
    """How often a contender runs in a further job."""
    return PASSES if any(len(job.runs) > 1 for job in first) else 1


def _further(suite: Suite, cells: Sequence[Cell], execution_id: str, histories: Histories, *, passes: int) -> Rounds:
    left = _trials(suite)[1:]
    return tuple(
        share_jobs(
            make_runs(
                execution_id,
                [(cell, trial) for cell in cells for trial in left[begin : begin + passes]],
                round_number=number,
            ),
            suite,
            histories,
        )
        for number, begin in enumerate(range(0, len(left), passes), start=2)
    )


def _trials(suite: Suite) -> range:
    return range(1, suite.measurement.trials + 1)
