"""Model-based search (Bayesian optimisation): a few cells spread over the axes, then those with the largest gain.

Each round measures the cells with the largest expected improvement beyond the tolerance per cost of a trial (Jones,
Schonlau and Welch 1998; per cost: Snoek, Larochelle and Adams 2012), as long as a cell may still be better by more than
the tolerance. Then the best cell and its rivals get further trials until the verdict's own tests settle the answer.
"""

from collections.abc import Mapping, Sequence, Set

from traindyno.core.measurement.run_result import RunResult
from traindyno.core.search.screening import screening_size, spread_points
from traindyno.core.search.space import build_space
from traindyno.core.search.survey import LEAST_CHANCE, Survey
from traindyno.core.suite.cells import baseline_cell
from traindyno.core.suite.runs import planned_cell_id
from traindyno.core.suite.suite import Cell, Suite
from traindyno.core.verdict.cell_trials import CellTrials
from traindyno.core.verdict.evidence import Evidence
from traindyno.core.verdict.open_cells import MOST_UNTOLD, is_futile, open_cells
from traindyno.core.verdict.refused_cells import BREAKS_LIMIT, may_yet_win
from traindyno.core.verdict.repeats import planned_results
from traindyno.core.verdict.verdict import FIRST_SEARCHED, FIRST_TRIALS, judge_evidence

# While no cell has worked, the search continues if a cell works with at least this probability.
LEAST_SUCCESS = 0.2
CELLS_PER_PARALLEL_RUN = 24

Trial = tuple[Cell, int]


def screening_trials(suite: Suite, cells: Sequence[Cell]) -> tuple[Trial, ...]:
    """The first trial of each cell of the first round, the baseline included if it is a cell."""
    space, baseline = build_space(cells), baseline_cell(suite)
    first = next((index for index, cell in enumerate(cells) if cell.cell_id == baseline.cell_id), 0)
    return tuple((cells[index], 1) for index in spread_points(space, screening_size(space), first))


def most_rounds(suite: Suite, cells: Sequence[Cell]) -> int:
    """The rounds of a search without lost results."""
    return 1 + -(-len(cells) // runs_at_once(cells)) + 2 * suite.measurement.trials


def runs_at_once(cells: Sequence[Cell]) -> int:
    """The cells of one round: more cells save rounds, and each trial then gives less information."""
    return max(1, round(len(cells) / CELLS_PER_PARALLEL_RUN))


def next_model_trials(suite: Suite, evidence: Evidence, results: Sequence[RunResult]) -> tuple[Trial, ...]:
    """None if the answer is settled, or if no cell that is worth a trial has one left.

    ``evidence`` is that of ``results``.
    """
    if evidence.survey is None:
        return ()
    cells = [each.cell for each in evidence.trials]
    done: dict[str, set[int]] = {cell.cell_id: set() for cell in cells}
    for result in planned_results(suite, results):
        done.setdefault(planned_cell_id(result.run), set()).add(result.run.trial)
    left = {
        cell.cell_id: [trial for trial in range(1, suite.measurement.trials + 1) if trial not in done[cell.cell_id]]
        for cell in cells
    }
    chosen = _explore(evidence, evidence.survey, done, left)[: runs_at_once(cells)] or _confirm(suite, evidence, left)
    return tuple((each.cell, left[each.cell.cell_id][0]) for each in chosen)


def _explore(
    evidence: Evidence, survey: Survey, done: Mapping[str, Set[int]], left: Mapping[str, Sequence[int]]
) -> list[CellTrials]:
    """Cells that may be better than the best one, those with the largest expected gain per cost of a trial first."""
    trials = evidence.trials
    least = LEAST_SUCCESS if survey.best is None else LEAST_CHANCE
    able = [
        (forecast.gain_per_cost, each)
        for index, (each, forecast) in enumerate(zip(trials, survey.forecasts, strict=True))
        if index != survey.best
        and forecast.chance > least
        and left[each.cell.cell_id]
        and _is_worth_a_trial(each, len(done[each.cell.cell_id]))
        and ((reason := evidence.refused.get(each.cell.cell_id)) == BREAKS_LIMIT or may_yet_win(reason))
    ]
    ranked = [each for _, each in sorted(able, key=lambda pair: -pair[0])]
    if survey.best is None or not ranked or not ranked[0].measured:
        return ranked
    best = trials[survey.best]
    is_behind = left[best.cell.cell_id] and len(best.measured) <= len(ranked[0].measured)
    return [best, *ranked] if is_behind else ranked


def _is_worth_a_trial(trials: CellTrials, done: int) -> bool:
    """False for a cell whose own settings make it fail, and after several trials without information."""
    if trials.measured:
        return done < FIRST_TRIALS
    return not trials.failed and len(trials.others) < MOST_UNTOLD


def _confirm(suite: Suite, evidence: Evidence, left: Mapping[str, Sequence[int]]) -> list[CellTrials]:
    finalists = _finalists(evidence)
    short = [each for each in finalists if len(each.measured) < FIRST_SEARCHED and left[each.cell.cell_id]]
    if short or not finalists:
        return short
    verdict = judge_evidence(suite, evidence)
    if min(len(each.measured) for each in finalists) >= FIRST_TRIALS and is_futile(suite, verdict):
        return []
    with_trials = [each for each in open_cells(verdict, finalists) if left[each.cell.cell_id]]
    fewest = min((len(each.measured) for each in with_trials), default=0)
    return [each for each in with_trials if len(each.measured) == fewest]


def _finalists(evidence: Evidence) -> list[CellTrials]:
    """The best cell and its nearest rival by the model, and all cells that were measured again."""
    survey = evidence.survey
    if survey is None or survey.best is None:
        return []
    ranked = sorted(
        (
            (forecast.ratio, index)
            for index, (each, forecast) in enumerate(zip(evidence.trials, survey.forecasts, strict=True))
            if each.measured and may_yet_win(evidence.refused.get(each.cell.cell_id)) and index != survey.best
        ),
    )
    chosen = {survey.best, *(index for _, index in ranked[:1])}
    return [
        each
        for index, each in enumerate(evidence.trials)
        if index in chosen or (len(each.measured) > 1 and may_yet_win(evidence.refused.get(each.cell.cell_id)))
    ]
