"""The next runs of an execution, from the results so far."""

from collections.abc import Sequence

from traindyno.core.measurement.loss_parity import LossSpread
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.statistics.hosts import HostPriors
from traindyno.core.suite.runs import make_runs, trial_runs, with_seeds
from traindyno.core.suite.suite import Cell, Run, Suite
from traindyno.core.verdict.evidence import gather_evidence
from traindyno.core.verdict.found_batch import missing_trials, searches_batch
from traindyno.core.verdict.race_search import most_rounds, next_race_trials


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

    There are no runs after ``last_round``, however many results were lost.
    """
    if round_number == 1:
        has_one = suite.search.is_race or searches_batch(cells)
        trials = [1] if has_one else range(1, suite.measurement.trials + 1)
        return with_seeds(suite, trial_runs(execution_id, cells, trials))
    if round_number > last_round(suite, cells):
        return ()
    if not suite.search.is_race:
        missing = missing_trials(suite, cells, results) if searches_batch(cells) else []
        return with_seeds(suite, make_runs(execution_id, missing, round_number=round_number))
    evidence = gather_evidence(suite, cells, results, host_priors=host_priors, loss_spread=loss_spread)
    chosen = next_race_trials(suite, evidence, results)
    return with_seeds(suite, make_runs(execution_id, chosen, round_number=round_number))


def last_round(suite: Suite, cells: Sequence[Cell]) -> int:
    """Twice the rounds of a search without losses: a result that is lost repeatedly ends the search."""
    rounds = most_rounds(suite) if suite.search.is_race else 1 + searches_batch(cells)
    return 2 * rounds
