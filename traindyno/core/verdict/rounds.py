"""Which runs come next, from the results so far."""

from collections.abc import Sequence

from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.runs import make_runs, trial_runs
from traindyno.core.suite.suite import Cell, Run, Search, Suite
from traindyno.core.verdict.elimination import first_trials, next_trials


def plan_round(
    suite: Suite,
    cells: Sequence[Cell],
    *,
    execution_id: str,
    round_number: int,
    results: Sequence[RunResult] = (),
) -> tuple[Run, ...]:
    """Rounds count from 1; no runs means that the search is over. ``results``: of all rounds before."""
    match suite.search:
        case Search.GRID:
            trials = range(1, suite.measurement.trials + 1) if round_number == 1 else range(0)
            return trial_runs(execution_id, cells, trials)
        case Search.ELIMINATE if round_number == 1:
            return trial_runs(execution_id, cells, first_trials(suite))
        case Search.ELIMINATE:
            return make_runs(execution_id, next_trials(suite, cells, results))
