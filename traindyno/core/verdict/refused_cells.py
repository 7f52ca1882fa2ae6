"""Why a cell that was measured can't be recommended."""

from collections.abc import Mapping, Sequence

from traindyno.core.measurement.loss_parity import LossParity, ParityFinding
from traindyno.core.suite.goal import Goal, QualityTarget
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.goal_metric import Metric, estimate_of, is_within_limit

BREAKS_LIMIT = "it exceeds the goal's limit"
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
    unlike: Mapping[str, str],
) -> dict[str, str]:
    """Cell id → reason.

    ``unlike``: cells whose work can't be compared, with the reason. If the goal is a quality, cells with other learning
    settings or another unit of work are compared by their time or cost to the target.
    """
    if goal.target is not None:
        return {row.cell_id: reason for row in rows if row.trials and (reason := _short_of(row, goal.target, metric))}
    refused = {row.cell_id: reason for row in rows if row.trials and (reason := _reason(row, goal, metric))}
    for parity in parities:
        if parity.finding is ParityFinding.DIFFERS:
            refused[parity.cell_id] = "its losses differ from the reference's, so it did not do the same work"
    return {**refused, **unlike}


def _short_of(row: CellRow, target: QualityTarget, metric: Metric) -> str | None:
    """Why the time or the cost until the target is unknown."""
    quality = row.quality
    if quality.best is None:
        return f"no evaluation of it measured {target.quality}"
    if not quality.reached:
        return f"it never reached {target}: its best is {target.text(quality.best)}"
    if quality.reached < row.trials:
        return f"only {quality.reached} of its {row.trials} trials reached {target}"
    return _UNKNOWN[metric] if estimate_of(row, metric) is None else None


def _reason(row: CellRow, goal: Goal, metric: Metric) -> str | None:
    if estimate_of(row, metric) is None:
        return _UNKNOWN[metric]
    is_within = is_within_limit(row, goal)
    if is_within is None:
        return "whether it meets the goal's limit is unknown"
    return None if is_within else BREAKS_LIMIT
