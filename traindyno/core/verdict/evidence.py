"""What the verdict is based on: each cell's trials, their spread, and the cells that may be recommended."""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from traindyno.core.costs.hazard import Hazard, HazardKey
from traindyno.core.measurement.loss_parity import LossParity, LossSpread, check_loss_parities
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.statistics.hosts import STATED_PRIORS, HostPriors
from traindyno.core.suite.cells import baseline_cell
from traindyno.core.suite.runs import round_of
from traindyno.core.suite.suite import Cell, Suite
from traindyno.core.suite.workload import Workload
from traindyno.core.verdict.cell_row import CellRow, build_rows
from traindyno.core.verdict.cell_trials import CellTrials, Noise, estimate_cell, measure_noise, suite_trials
from traindyno.core.verdict.confounds import LearningKey, learning_key
from traindyno.core.verdict.contenders import find_contenders
from traindyno.core.verdict.equal_work import equalise_work
from traindyno.core.verdict.goal_metric import Metric, choose_metric, quantity_of
from traindyno.core.verdict.quantity import projected_usd
from traindyno.core.verdict.refused_cells import find_refusals, outpaced_cells
from traindyno.core.verdict.unlike_work import find_unlike_work


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """``trials`` and ``rows``: of all cells, in their order. ``refused``: cell id → why it can't be recommended.

    ``compared``: the cells among which the verdict selects.
    """

    baseline: Cell | None
    trials: tuple[CellTrials, ...]
    rows: tuple[CellRow, ...]
    metric: Metric
    noise: Noise
    parities: tuple[LossParity, ...]
    refused: Mapping[str, str]
    compared: tuple[CellTrials, ...]
    #: Those that a race runs again, by their first runs; empty in a grid.
    contenders: frozenset[str] = frozenset()
    #: Why cells do unlike work, so that none is compared; None where all do the same.
    unlike: str | None = None

    @property
    def dropped(self) -> list[CellTrials]:
        """Cells that a race measured once, and may have recommended."""
        known = {*self.refused, *(each.cell.cell_id for each in self.compared)}
        return [each for each in self.trials if each.measured and each.cell.cell_id not in known]

    @property
    def shares_jobs(self) -> bool:
        """Whether a job carried runs of several cells."""
        carried = {
            (result.run.job_id, each.cell.cell_id)
            for each in self.trials
            for result in (*each.measured, *each.others)
            if result.run.job_id is not None
        }
        return len(carried) > len({job_id for job_id, _ in carried})

    @property
    def passes(self) -> int:
        """The most runs of a cell in a round after the first one."""
        runs = {(round_of(result.run), result.run.block) for each in self.trials for result in each.measured}
        return max(Counter(number for number, _ in runs if number != "1").values(), default=1)

    @property
    def samples_per_step(self) -> Mapping[str, int]:
        """Cell id → the samples of a step of all ranks, as measured; without unknown ones."""
        known = ((each.cell.cell_id, each.samples_per_step) for each in self.trials)
        return {cell_id: samples for cell_id, samples in known if samples is not None}


def gather_evidence(
    suite: Suite,
    cells: Sequence[Cell],
    results: Sequence[RunResult],
    *,
    host_priors: HostPriors | None = None,
    loss_spread: LossSpread | None = None,
    hazards: Mapping[HazardKey, Hazard] | None = None,
) -> Evidence:
    """``hazards`` of None: as the results and the suite's expectations of spot say."""
    baseline = _baseline(suite, cells)
    grouped = suite_trials(suite, cells, results, hazards=hazards)
    # The time to a quality is comparable whatever the unit of work is.
    unlike = find_unlike_work(grouped, suite.workload) if suite.goal.target is None else None
    trials = equalise_work(grouped, baseline)
    metric = choose_metric(
        suite.goal,
        [
            (each.cell.settings.instance, estimate_cell(each, projected_usd, Noise()) is not None)
            for each in trials
            if each.measured
        ],
    )
    priors = {**STATED_PRIORS, **(host_priors or {})}
    noise = measure_noise(trials, quantity_of(metric, suite.goal.target), priors)
    rows = build_rows(trials, noise, suite.goal.target)
    parities = check_parities(suite.workload, trials, baseline, loss_spread)
    refused = {**outpaced_cells(trials), **find_refusals(rows, goal=suite.goal, metric=metric, parities=parities)}
    if unlike is not None:
        refused |= {
            each.cell.cell_id: unlike.reason
            for each in trials
            if each.measured and each.cell.cell_id in unlike.cell_ids
        }
    eligible = [each for each in trials if each.measured and each.cell.cell_id not in refused and unlike is None]
    quantity, has_target = quantity_of(metric, suite.goal.target), suite.goal.target is not None
    contenders = (
        find_contenders(trials, quantity, refused=refused, priors=priors, has_target=has_target)
        if suite.search.is_race and unlike is None
        else frozenset[str]()
    )
    return Evidence(
        baseline=baseline,
        trials=trials,
        rows=rows,
        metric=metric,
        noise=noise,
        parities=parities,
        refused=refused,
        compared=tuple(_in_race(eligible, contenders) if suite.search.is_race else eligible),
        contenders=contenders,
        unlike=unlike.reason if unlike else None,
    )


def _in_race(eligible: Sequence[CellTrials], contenders: Set[str]) -> Sequence[CellTrials]:
    """The cells that the race has run again, or has to; the others were dropped. After the first round: all."""
    if all(len(each.measured) == 1 for each in eligible):
        return eligible
    return [each for each in eligible if len(each.measured) > 1 or each.cell.cell_id in contenders]


def _baseline(suite: Suite, cells: Sequence[Cell]) -> Cell | None:
    wanted = baseline_cell(suite)
    return next((cell for cell in cells if cell.cell_id == wanted.cell_id), None)


def check_parities(
    workload: Workload, trials: Sequence[CellTrials], baseline: Cell | None, history: LossSpread | None = None
) -> tuple[LossParity, ...]:
    """Compares each cell with the first one that should learn alike; the baseline comes first."""
    order = sorted(
        (each for each in trials if each.measured),
        key=lambda each: baseline is None or each.cell.cell_id != baseline.cell_id,
    )
    groups: dict[LearningKey, list[CellTrials]] = {}
    for each in order:
        groups.setdefault(learning_key(each.cell, workload, each.samples_per_step), []).append(each)
    return tuple(
        parity
        for group in groups.values()
        for parity in check_loss_parities([each.measured for each in group], history=history)
    )
