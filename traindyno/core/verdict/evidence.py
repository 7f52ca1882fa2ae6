"""What the results hold for the verdict: each cell's trials, how they scatter, and what may be recommended."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from traindyno.core.measurement.hosts import STATED_PRIOR, HostSpread
from traindyno.core.measurement.loss_parity import LossParity, LossSpread
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.search.survey import Survey
from traindyno.core.suite.cells import baseline_cell
from traindyno.core.suite.choices import Search
from traindyno.core.suite.suite import Cell, Suite
from traindyno.core.verdict.cell_row import CellRow, build_rows
from traindyno.core.verdict.cell_survey import survey_trials
from traindyno.core.verdict.cell_trials import CellTrials, Noise, group_trials, measure_noise
from traindyno.core.verdict.equal_work import equalise_work, unlike_cells
from traindyno.core.verdict.goal_metric import Metric, choose_metric, quantity_of
from traindyno.core.verdict.parities import check_parities
from traindyno.core.verdict.refusals import find_refusals
from traindyno.core.verdict.repeats import set_aside_repeated


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """``trials`` and ``rows`` are of all cells, in their order. ``refused``: cell id → why it can't be recommended.

    ``compared`` are the cells among which the verdict selects. ``survey`` is what a model over the axes says of all
    cells; None where the search has none.
    """

    baseline: Cell | None
    trials: tuple[CellTrials, ...]
    rows: tuple[CellRow, ...]
    metric: Metric
    noise: Noise
    parities: tuple[LossParity, ...]
    refused: Mapping[str, str]
    compared: tuple[CellTrials, ...]
    survey: Survey | None


def gather_evidence(
    suite: Suite,
    cells: Sequence[Cell],
    results: Sequence[RunResult],
    *,
    host_prior: HostSpread | None = None,
    loss_spread: LossSpread | None = None,
) -> Evidence:
    baseline = _baseline(suite, cells)
    grouped = group_trials(cells, set_aside_repeated(suite, results))
    unlike = unlike_cells(grouped, baseline)
    trials = equalise_work(grouped, baseline)
    metric = choose_metric(suite.goal, build_rows(trials, Noise()))
    noise = measure_noise(trials, quantity_of(metric, suite.goal.target), host_prior or STATED_PRIOR)
    rows = build_rows(trials, noise, suite.goal.target)
    parities = check_parities(trials, baseline, loss_spread)
    refused = find_refusals(rows, goal=suite.goal, metric=metric, parities=parities, unlike=unlike)
    eligible = [each for each in trials if each.measured and each.cell.cell_id not in refused]
    is_modelled = suite.search is Search.MODEL
    return Evidence(
        baseline=baseline,
        trials=trials,
        rows=rows,
        metric=metric,
        noise=noise,
        parities=parities,
        refused=refused,
        compared=tuple(_with_repeats(eligible) if is_modelled else eligible),
        survey=survey_trials(suite, trials, rows, metric, refused) if is_modelled else None,
    )


def _with_repeats(eligible: Sequence[CellTrials]) -> Sequence[CellTrials]:
    """The cells that the search went on to measure: the others were dropped after one trial."""
    return [each for each in eligible if len(each.measured) > 1] or eligible


def _baseline(suite: Suite, cells: Sequence[Cell]) -> Cell | None:
    wanted = baseline_cell(suite)
    return next((cell for cell in cells if cell.cell_id == wanted.cell_id), None)
