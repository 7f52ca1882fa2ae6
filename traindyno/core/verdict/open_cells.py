"""Which cells of a search get further trials: those between which the verdict is open, while more may settle it."""

from collections.abc import Sequence

from traindyno.core.statistics.selection import Relation
from traindyno.core.suite.suite import Suite
from traindyno.core.verdict.cell_trials import CellTrials
from traindyno.core.verdict.verdict import SETTLED, Verdict

# A cell is dropped after so many trials without information (no capacity, an image that can't be pulled).
MOST_UNTOLD = 2
# If the answer needs more than so many times the suite's trials (80 % power), the suite's trials seldom settle it.
MOST_TIMES_NEEDED = 4


def open_cells(verdict: Verdict, searched: Sequence[CellTrials]) -> list[CellTrials]:
    """None of ``searched`` if the answer is settled: one cell is left, which is not near the goal's limit."""
    if verdict.finding in SETTLED:
        return []
    near_limit = set(verdict.refused)
    rivals = {rival.cell_id for rival in verdict.related(Relation.OPEN, Relation.UNKNOWN)}
    found = [each for each in searched if each.cell.cell_id in {verdict.recommended, *rivals, *near_limit}]
    is_open = len(found) > 1 or any(each.cell.cell_id in near_limit for each in found)
    return found if is_open else []


def is_futile(suite: Suite, verdict: Verdict) -> bool:
    """Whether the remaining trials are unlikely to settle the answer, because it needs far more."""
    if not verdict.related(Relation.OPEN):
        return False
    needed = verdict.trials_to_decide
    return needed is None or needed > MOST_TIMES_NEEDED * suite.measurement.trials
