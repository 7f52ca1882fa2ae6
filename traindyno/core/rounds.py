"""Which runs come next, from the results so far."""

from traindyno.core.runs import trial_runs
from traindyno.core.suite import Cell, Run, Search, Suite


def plan_round(suite: Suite, cells: tuple[Cell, ...], *, execution_id: str, round_number: int) -> tuple[Run, ...]:
    """Rounds count from 1; no runs means that the search is over. ``grid`` is one round of everything."""
    match suite.search:
        case Search.GRID | Search.ELIMINATE:
            return trial_runs(execution_id, cells, range(1, suite.measurement.trials + 1)) if round_number == 1 else ()
