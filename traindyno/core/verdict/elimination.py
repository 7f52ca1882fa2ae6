"""Search by elimination: cells that can no longer win get no further trials; those that may get one more each."""

from collections import Counter
from collections.abc import Sequence

from traindyno.core.costs.prices import SECONDS_PER_HOUR
from traindyno.core.measurement.many_comparisons import SIGNIFICANCE
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.measurement.statistics import Estimate
from traindyno.core.suite.runs import planned_cell_id
from traindyno.core.suite.suite import Cell, Goal, GoalKind, Suite
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.goal_metric import estimate_of
from traindyno.core.verdict.verdict import Verdict, judge

# The fewest that tell anything of a cell's spread.
FIRST_TRIALS = 2


def first_trials(suite: Suite) -> range:
    return range(1, min(FIRST_TRIALS, suite.measurement.trials) + 1)


def next_trials(suite: Suite, cells: Sequence[Cell], results: Sequence[RunResult]) -> tuple[tuple[Cell, int], ...]:
    """Cells with the trial that comes next; none once the answer is settled or every open cell has all its trials."""
    verdict = judge(suite, cells, results)
    still_open = find_open_cells(suite, verdict)
    if len(still_open) < 2 or _is_precise_enough(suite, verdict, still_open):
        return ()
    # By the cell that a run was planned for: where it ran is another matter.
    done = Counter(planned_cell_id(result.run) for result in results)
    return tuple(
        (cell, done[cell.cell_id] + 1)
        for cell in cells
        if cell.cell_id in still_open and done[cell.cell_id] < suite.measurement.trials
    )


def find_open_cells(suite: Suite, verdict: Verdict) -> frozenset[str]:
    """The best so far, what can't be told from it, and what may keep the goal's limit after all.

    Looking after every round gives chance more turns, so each look claims its share of the significance only.
    """
    looks = max(1, suite.measurement.trials - FIRST_TRIALS + 1)
    beaten = {
        pair.second_cell_id
        for pair in verdict.pairs
        if pair.first_cell_id == verdict.recommended
        and pair.adjusted_p is not None
        and pair.adjusted_p < SIGNIFICANCE / looks
    }
    ranked = {cell_id for pair in verdict.pairs for cell_id in (pair.first_cell_id, pair.second_cell_id)}
    ranked |= {verdict.recommended} if verdict.recommended else set()
    near_limit = {row.cell_id for row in verdict.rows if row.cell_id not in ranked and _may_keep(row, suite.goal)}
    return frozenset((ranked - beaten) | near_limit)


def _may_keep(row: CellRow, goal: Goal) -> bool:
    """Whether a cell that breaks the limit by its mean may keep it by its interval."""
    limited, limit = _limited(row, goal)
    if limited is None or limit is None or limited.mean <= limit:
        return False
    return limited.interval is None or limited.interval.low <= limit


def _limited(row: CellRow, goal: Goal) -> tuple[Estimate | None, float | None]:
    match goal.kind:
        case GoalKind.CHEAPEST_WITHIN:
            return row.seconds, float(goal.hours or 0) * SECONDS_PER_HOUR
        case GoalKind.FASTEST_WITHIN:
            return row.usd, float(goal.usd or 0)
        case GoalKind.CHEAPEST | GoalKind.FASTEST:
            return None, None


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
