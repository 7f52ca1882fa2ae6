"""Trials that are repeated because their host was busy with other work, and which results then count.

In a suite of T trials, the repeat of trial t is trial t + T, its second repeat t + 2 T, and so on.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.contention import MOST_PROGRAMS
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.runs import planned_cell_id
from traindyno.core.suite.suite import Cell, Suite


def is_contended(result: RunResult) -> bool:
    """Whether other work on its host slowed the run down; False if the log does not show it."""
    contention = result.measured.contention if result.measured else None
    return contention is not None and contention.is_contended


def busy_programs(results: Iterable[RunResult]) -> tuple[str, ...]:
    """The other programs on the hosts of contended runs, those of most runs first; empty where they are unknown."""
    runs = (each.measured.contention for each in results if is_contended(each) and each.measured is not None)
    counts = Counter(name for contention in runs if contention is not None for name in contention.programs)
    return tuple(name for name, _ in counts.most_common(MOST_PROGRAMS))


def needed_repeats(suite: Suite, cells: Sequence[Cell], results: Sequence[RunResult]) -> tuple[tuple[Cell, int], ...]:
    """Cells with the trial to repeat: each trial whose latest run was contended, within the suite's limit."""
    known = {cell.cell_id: cell for cell in cells}
    longest = suite.measurement.trials * (1 + suite.limits.max_contended_repeats)
    return tuple(
        (known[cell_id], latest.run.trial + suite.measurement.trials)
        for latest in _latest_of_trials(suite, results)
        if is_contended(latest)
        and (cell_id := planned_cell_id(latest.run)) in known
        and latest.run.trial + suite.measurement.trials <= longest
    )


def set_aside_repeated(suite: Suite, results: Sequence[RunResult]) -> list[RunResult]:
    """All results, without the measurements of runs that were repeated: their costs and outcomes remain."""
    counted = {latest.run.run_id for latest in _latest_of_trials(suite, results)}
    return [result if result.run.run_id in counted else replace(result, measured=None) for result in results]


def planned_results(suite: Suite, results: Sequence[RunResult]) -> list[RunResult]:
    """The results of the trials that the suite asks for, without repeats."""
    return [result for result in results if result.run.trial <= suite.measurement.trials]


def _latest_of_trials(suite: Suite, results: Sequence[RunResult]) -> Iterable[RunResult]:
    """One run of each trial: the last completed one of it and its repeats, or the first if none completed."""
    latest: dict[tuple[str, int], RunResult] = {}
    for result in sorted(results, key=lambda each: each.run.trial):
        trial = (planned_cell_id(result.run), result.run.trial % suite.measurement.trials)
        if trial not in latest or result.outcome is Outcome.COMPLETED:
            latest[trial] = result
    return latest.values()
