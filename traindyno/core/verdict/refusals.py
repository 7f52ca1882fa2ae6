"""Why a cell that was measured can't be recommended."""

from collections.abc import Mapping, Sequence

from traindyno.core.measurement.loss_parity import LossParity, ParityFinding
from traindyno.core.suite.suite import Goal
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.goal_metric import Metric, estimate_of, is_within_limit


def find_refusals(
    rows: Sequence[CellRow],
    *,
    goal: Goal,
    metric: Metric,
    parities: Sequence[LossParity],
    unlike: Mapping[str, str],
) -> dict[str, str]:
    """Cell id → reason. ``unlike`` are cells whose work can't be compared, with the reason."""
    refused = {row.cell_id: reason for row in rows if row.trials and (reason := _reason(row, goal, metric))}
    for parity in parities:
        if parity.finding is ParityFinding.DIFFERS:
            refused[parity.cell_id] = "its losses differ from the reference's, so it did not do the same work"
    return {**refused, **unlike}


def _reason(row: CellRow, goal: Goal, metric: Metric) -> str | None:
    if estimate_of(row, metric) is None:
        return "its price is unknown" if metric is Metric.USD else "its billed time is unknown"
    is_within = is_within_limit(row, goal)
    if is_within is None:
        return "whether it keeps the goal's limit is unknown"
    return None if is_within else "it breaks the goal's limit"
