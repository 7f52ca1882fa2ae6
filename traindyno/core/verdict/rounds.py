"""Which runs come next, from the results so far."""

from collections.abc import Sequence

from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.choices import Search
from traindyno.core.suite.runs import make_runs, trial_runs
from traindyno.core.suite.suite import Cell, Run, Suite
from traindyno.core.verdict.elimination import first_trials, last_round, next_trials
from traindyno.core.verdict.repeats import needed_repeats


def plan_round(
    suite: Suite,
    cells: Sequence[Cell],
    *,
    execution_id: str,
    round_number: int,
    results: Sequence[RunResult] = (),
) -> tuple[Run, ...]:
    """Rounds count from 1; no runs means that the search is over. ``results``: of all rounds before.

    Trials on a busy host are repeated first: what comes next may depend on them. There are no runs after
    ``last_round``, however many results were lost.
    """
    if round_number == 1:
        is_grid = suite.search is Search.GRID
        trials = range(1, suite.measurement.trials + 1) if is_grid else first_trials(suite)
        return trial_runs(execution_id, cells, trials)
    if round_number > last_round(suite):
        return ()
    repeats = needed_repeats(suite, cells, results)
    if repeats or suite.search is Search.GRID:
        return make_runs(execution_id, repeats)
    return make_runs(execution_id, next_trials(suite, cells, results))
