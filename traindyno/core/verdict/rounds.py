"""The next runs of an execution, from the results so far."""

from collections.abc import Sequence

from traindyno.core.measurement.loss_parity import LossSpread
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.statistics.hosts import HostPriors
from traindyno.core.suite.choices import Search
from traindyno.core.suite.runs import make_runs, trial_runs, with_seeds
from traindyno.core.suite.suite import Cell, Run, Suite
from traindyno.core.verdict.elimination import first_trials, next_trials
from traindyno.core.verdict.evidence import gather_evidence
from traindyno.core.verdict.found_batch import missing_trials, searches_batch
from traindyno.core.verdict.model_search import most_rounds, next_model_trials, screening_trials
from traindyno.core.verdict.race_search import most_rounds as most_race_rounds
from traindyno.core.verdict.race_search import next_race_trials
from traindyno.core.verdict.repeats import needed_repeats
from traindyno.core.verdict.verdict import FIRST_TRIALS

# What is measured after the first round
FOLLOWING = {
    Search.ELIMINATE: next_trials,
    Search.MODEL: next_model_trials,
    Search.RACE: next_race_trials,
}


def plan_round(
    suite: Suite,
    cells: Sequence[Cell],
    *,
    execution_id: str,
    round_number: int,
    results: Sequence[RunResult] = (),
    host_priors: HostPriors | None = None,
    loss_spread: LossSpread | None = None,
) -> tuple[Run, ...]:
    """Rounds count from 1; no runs means that the search has ended. ``results``: of all earlier rounds.

    ``host_priors`` and ``loss_spread`` are the verdict's own, so that a search ends when the verdict is decided, and
    does not measure refused cells again.

    Trials on a busy host are repeated first, because the next runs may depend on them. There are no runs after
    ``last_round``, however many results were lost.
    """
    if round_number == 1:
        return with_seeds(suite, _first_round(suite, cells, execution_id))
    if round_number > last_round(suite, cells):
        return ()
    repeats = needed_repeats(suite, cells, results)
    if repeats or suite.search is Search.GRID:
        missing = missing_trials(suite, cells, results) if searches_batch(cells) else []
        return with_seeds(suite, make_runs(execution_id, [*repeats, *missing], round_number=round_number))
    evidence = gather_evidence(suite, cells, results, host_priors=host_priors, loss_spread=loss_spread)
    chosen = FOLLOWING[suite.search](suite, evidence, results)
    return with_seeds(suite, make_runs(execution_id, chosen, round_number=round_number))


def last_round(suite: Suite, cells: Sequence[Cell]) -> int:
    """Twice the rounds of a search without losses: a result that is lost repeatedly ends the search."""
    match suite.search:
        case Search.GRID:
            rounds = 2 if searches_batch(cells) else 1
        case Search.ELIMINATE:
            rounds = max(1, suite.measurement.trials - FIRST_TRIALS + 1)
        case Search.MODEL:
            rounds = most_rounds(suite, cells)
        case Search.RACE:
            rounds = most_race_rounds(suite)
    return 2 * rounds * (1 + suite.limits.max_contended_repeats)


def _first_round(suite: Suite, cells: Sequence[Cell], execution_id: str) -> tuple[Run, ...]:
    match suite.search:
        case Search.GRID:
            trials = 1 if searches_batch(cells) else suite.measurement.trials
            return trial_runs(execution_id, cells, range(1, trials + 1))
        case Search.ELIMINATE:
            return trial_runs(execution_id, cells, first_trials(suite))
        case Search.MODEL:
            return make_runs(execution_id, screening_trials(suite, cells))
        case Search.RACE:
            return trial_runs(execution_id, cells, [1])
