"""Which cells' losses are compared, and with which."""

from collections.abc import Sequence

from traindyno.core.measurement.loss_parity import LossParity, LossSpread, check_loss_parities
from traindyno.core.suite.suite import Cell
from traindyno.core.verdict.cell_trials import CellTrials
from traindyno.core.verdict.confounds import LearningKey, learning_key


def check_parities(
    trials: Sequence[CellTrials], baseline: Cell | None, history: LossSpread | None = None
) -> tuple[LossParity, ...]:
    """Each cell against the first one that should learn alike, the baseline before all others."""
    order = sorted(
        (each for each in trials if each.measured),
        key=lambda each: baseline is None or each.cell.cell_id != baseline.cell_id,
    )
    groups: dict[LearningKey, list[CellTrials]] = {}
    for each in order:
        groups.setdefault(learning_key(each.cell), []).append(each)
    return tuple(
        parity
        for group in groups.values()
        for parity in check_loss_parities([each.measured for each in group], history=history)
    )
