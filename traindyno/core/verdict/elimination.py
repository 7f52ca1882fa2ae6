"""Search by elimination: cells that can no longer win get no further trials; those that may get one more each."""

from collections.abc import Sequence

from traindyno.core.measurement.run_result import RunResult
from traindyno.core.statistics.estimates import Estimate
from traindyno.core.statistics.selection import Relation
from traindyno.core.suite.runs import planned_cell_id
from traindyno.core.suite.suite import Cell, Suite
from traindyno.core.verdict.evidence import Evidence
from traindyno.core.verdict.goal_metric import estimate_of, may_keep_limit
from traindyno.core.verdict.repeats import planned_results
from traindyno.core.verdict.verdict import FIRST_TRIALS, SETTLED, Verdict, judge_evidence


def first_trials(suite: Suite) -> range:
    return range(1, min(FIRST_TRIALS, suite.measurement.trials) + 1)


def next_trials(suite: Suite, evidence: Evidence, results: Sequence[RunResult]) -> tuple[tuple[Cell, int], ...]:
    """The next trial of each open cell; none if the answer is settled or every open cell has all its trials.

    ``evidence`` is that of ``results``. A trial whose result was lost is planned again: its jobs are not repeated, only
    its result is read again.
    """
    cells = [each.cell for each in evidence.trials]
    verdict = judge_evidence(suite, evidence)
    still_open = find_open_cells(suite, verdict)
    if len(still_open) < 2 or _is_precise_enough(suite, verdict, still_open):
        return ()
    # The cell is the one that the run was planned for, whichever instance type it ran on.
    done = {(planned_cell_id(result.run), result.run.trial) for result in planned_results(suite, results)}
    trials = range(1, suite.measurement.trials + 1)
    missing = {cell.cell_id: [trial for trial in trials if (cell.cell_id, trial) not in done] for cell in cells}
    return tuple(
        (cell, missing[cell.cell_id][0]) for cell in cells if cell.cell_id in still_open and missing[cell.cell_id]
    )


def find_open_cells(suite: Suite, verdict: Verdict) -> frozenset[str]:
    """The best cell so far, those that can't be distinguished from it, and those that may still meet the goal's limit.

    The verdict's significance is this look's share of 5 % (see ``Looks``): all looks together claim no more than a
    single look at the end would.
    """
    near_limit = {row.cell_id for row in verdict.rows if row.trials and may_keep_limit(row, suite.goal)}
    if verdict.recommended is None or (verdict.finding in SETTLED and not near_limit):
        return frozenset(near_limit)
    unsettled = verdict.related(Relation.OPEN, Relation.UNKNOWN)
    return frozenset({verdict.recommended, *(rival.cell_id for rival in unsettled), *near_limit})


def _is_precise_enough(suite: Suite, verdict: Verdict, cell_ids: frozenset[str]) -> bool:
    stop_when = suite.measurement.stop_when
    if stop_when is None:
        return False
    widths = [_relative_half_width(estimate_of(verdict.row(cell_id), verdict.metric)) for cell_id in cell_ids]
    return all(width is not None and width <= stop_when.relative_half_width for width in widths)


def _relative_half_width(estimate: Estimate | None) -> float | None:
    if estimate is None or estimate.interval is None:
        return None
    return (estimate.interval.high - estimate.interval.low) / 2 / estimate.mean
