"""Why a cell that was measured can't be recommended."""

from collections.abc import Sequence

from traindyno.core.costs.prediction import ENDLESS
from traindyno.core.costs.quantity_text import share_text
from traindyno.core.measurement.loss_parity import LossParity, ParityFinding
from traindyno.core.suite.goal import Goal, QualityTarget
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.cell_trials import CellTrials
from traindyno.core.verdict.goal_metric import Metric, estimate_of, is_within_limit, limited_estimate

BREAKS_LIMIT = "it exceeds the goal's limit"
MAY_BREAK_LIMIT = "more than 5 % of its runs may exceed the goal's limit"
UNKNOWN_OF_LIMIT = "whether it meets the goal's limit is unknown"
MISSES_EVENT = "its trials show no checkpoint or no evaluation, whose cost the full run's schedule needs"
_UNKNOWN = {
    Metric.SECONDS: "its billed time is unknown",
    Metric.INSTANCE_HOURS: "its billed time is unknown",
    Metric.SECONDS_TO_TARGET: "the times of its jobs are unknown",
    Metric.USD: "its price is unknown",
    Metric.USD_TO_TARGET: "its price is unknown",
}


def find_refusals(
    rows: Sequence[CellRow],
    *,
    goal: Goal,
    metric: Metric,
    parities: Sequence[LossParity],
) -> dict[str, str]:
    """Cell id → reason.

    If the goal is a quality, cells with other learning settings are compared by their time or cost to the target.
    """
    if goal.target is not None:
        return {row.cell_id: reason for row in rows if row.trials and (reason := _short_of(row, goal.target, metric))}
    refused = {row.cell_id: reason for row in rows if row.trials and (reason := _reason(row, goal, metric))}
    for parity in parities:
        if parity.finding is ParityFinding.DIFFERS:
            refused[parity.cell_id] = "its losses differ from the reference's, so it did not do the same work"
    return refused


def outpaced_cells(trials: Sequence[CellTrials]) -> dict[str, str]:
    """Measured cells of which another trial was outpaced, with the reason: their means are of the fast trials only.

    A cell that was outpaced itself is no evidence: cells may outpace each other by chance.
    """
    cell_of = {result.run.run_id: each.cell.cell_id for each in trials for result in each.measured}
    ahead = {each.cell.cell_id for each in trials if not each.outpaced}
    found = {}
    for each in trials:
        by = {cell_of.get(result.bound.by) for result in each.outpaced if result.bound}
        if each.measured and by & ahead:
            found[each.cell.cell_id] = (
                f"{len(each.outpaced)} of its runs could not win, and ended early: at least"
                f" {share_text(each.least_behind)} slower than a run of the same job"
            )
    return found


def _short_of(row: CellRow, target: QualityTarget, metric: Metric) -> str | None:
    """Why the time or the cost until the target is unknown."""
    quality = row.quality
    if quality.best is None:
        return f"no evaluation of it measured {target.quality}"
    if not quality.reached:
        return f"it never reached {target}: its best is {target.text(quality.best)}"
    if quality.reached < row.trials:
        return f"only {quality.reached} of its {row.trials} trials reached {target}"
    return _why_unknown(row, metric) if estimate_of(row, metric) is None else None


def _reason(row: CellRow, goal: Goal, metric: Metric) -> str | None:
    if estimate_of(row, metric) is None:
        return _why_unknown(row, metric)
    limited, limit = limited_estimate(row, goal)
    if limited is not None and limit is not None and limited.mean > limit:
        return BREAKS_LIMIT
    is_within = is_within_limit(row, goal)
    if is_within is None:
        reason = row.prediction.reason if row.prediction else None
        return f"{UNKNOWN_OF_LIMIT}{f': {reason}' if reason else ''}"
    return None if is_within else MAY_BREAK_LIMIT


def may_yet_win(reason: str | None) -> bool:
    """Whether the cell is not refused, or only because further trials have to show that it keeps the goal's limit."""
    return reason is None or reason.startswith((MAY_BREAK_LIMIT, UNKNOWN_OF_LIMIT))


def _why_unknown(row: CellRow, metric: Metric) -> str:
    if row.is_endless:
        return f"a run of it would hardly ever end: {ENDLESS}"
    return MISSES_EVENT if row.misses_event else _UNKNOWN[metric]
