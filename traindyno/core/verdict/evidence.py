"""What the verdict is based on: each cell's trials, their spread, and the cells that may be
recommended.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, log1p, sqrt
from statistics import fmean

from traindyno.core.costs.hazard import Hazard, HazardKey
from traindyno.core.costs.prices import SECONDS_PER_HOUR
from traindyno.core.measurement.loss_parity import LossParity, ParityFinding, check_loss_parities
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.run.record import QualityTarget
from traindyno.core.run.workload import Workload
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.goal import Goal
from traindyno.core.suite.suite import Suite
from traindyno.core.verdict.cell_quality import CellQuality
from traindyno.core.verdict.cell_row import CellRow, build_row
from traindyno.core.verdict.cell_runs import CellRuns, group_runs
from traindyno.core.verdict.confounds import LearningKey, learning_key
from traindyno.core.verdict.figure_table import build_figures
from traindyno.core.verdict.goal_metric import Metric, choose_metric, estimate_of
from traindyno.core.verdict.unlike_work import find_unlike_work
from traindyno.figures.distributions import SIGNIFICANCE, t_quantile
from traindyno.figures.hosts import STATED_PRIORS, HostPriors, Trial
from traindyno.figures.in_job.race import Racer, pick_contenders
from traindyno.figures.in_job.run_scatter import KNOWN_DEGREES, NO_SCATTER, RunScatter
from traindyno.figures.model import TrialModel, correlated, fit_model
from traindyno.figures.table import FigureColumn

BREAKS_LIMIT = "it exceeds the goal's limit"
MAY_BREAK_LIMIT = "more than 5 % of its runs may exceed the goal's limit"
UNKNOWN_OF_LIMIT = "whether it meets the goal's limit is unknown"
MISSES_EVENT = (
    "its trials show no checkpoint or no evaluation, whose cost the full run's schedule needs"
)
_UNKNOWN = {
    Metric.SECONDS: "its billed time is unknown",
    Metric.INSTANCE_HOURS: "its billed time is unknown",
    Metric.SECONDS_TO_TARGET: "the times of its jobs are unknown",
    Metric.USD: "its price is unknown",
    Metric.USD_TO_TARGET: "its price is unknown",
}


def find_refusals(
    rows: Sequence[CellRow],
    *,
    goal: Goal,
    metric: Metric,
    parities: Sequence[LossParity],
) -> dict[str, str]:
    """Cell id → reason.

    If the goal is a quality, cells with other learning settings are compared by their time or cost
    to the target.
    """
    if goal.target is not None:
        return {
            row.cell_id: reason
            for row in rows
            if row.trials and (reason := _short_of(row, goal.target, metric))
        }
    refused = {
        row.cell_id: reason for row in rows if row.trials and (reason := _reason(row, goal, metric))
    }
    for parity in parities:
        if parity.finding is ParityFinding.DIFFERS:
            refused[parity.cell_id] = (
                "its losses differ from the reference's, so it did not do the same work"
            )
    return refused


def _short_of(row: CellRow, target: QualityTarget, metric: Metric) -> str | None:
    """Why the time or the cost until the target is unknown."""
    quality = row.part(CellQuality)
    if quality.best is None:
        return f"no evaluation of it measured {target.quality}"
    if not quality.reached:
        return f"it never reached {target}: its best is {target.text(quality.best)}"
    if quality.reached < row.trials:
        return f"only {quality.reached} of its {row.trials} trials reached {target}"
    return _why_unknown(row, metric) if estimate_of(row, metric) is None else None


def _reason(row: CellRow, goal: Goal, metric: Metric) -> str | None:
    """A limit is kept if 95 % of single runs keep it: by the upper end of their 90 % prediction."""
    if estimate_of(row, metric) is None:
        return _why_unknown(row, metric)
    one_run = row.prediction
    if goal.hours is not None:
        limit = float(goal.hours) * SECONDS_PER_HOUR
        limited = row.seconds
        run = one_run.seconds if one_run else None
    elif goal.usd is not None:
        limit = float(goal.usd)
        limited = row.usd
        run = one_run.usd if one_run else None
    else:
        return None
    if limited is not None and limited.mean > limit:
        return BREAKS_LIMIT
    if run is None:
        return f"{UNKNOWN_OF_LIMIT}{f': {one_run.reason}' if one_run and one_run.reason else ''}"
    return None if run.high <= limit else MAY_BREAK_LIMIT


def may_yet_win(reason: str | None) -> bool:
    """Whether the cell is not refused, or only because further trials have to show that it keeps
    the goal's limit.
    """
    return reason is None or reason.startswith((MAY_BREAK_LIMIT, UNKNOWN_OF_LIMIT))


def _why_unknown(row: CellRow, metric: Metric) -> str:
    return MISSES_EVENT if row.steadiness.misses_event else _UNKNOWN[metric]


def find_contenders(
    cells: Sequence[CellRuns],
    values: Mapping[str, Sequence[Trial]],
    *,
    refused: Mapping[str, str],
    priors: HostPriors,
    within: float,
) -> frozenset[str]:
    """The ids of the cells. They are others if the leader is refused, or fails, in a further run.

    Args:
        cells: with their runs.
        values: the column that decides, by cell.
        refused: cell id → why it can't be recommended.
        priors: of hosts, as the first round knew them.
        within: a cell that is behind by no more than this share may win.
    """
    racers = [
        Racer(
            cell_id=runs.cell.cell_id,
            job=runs.measured[0].run.job_id or runs.measured[0].run.run_id,
            value=values[runs.key][0].value,
            host_deviation=priors[runs.host_class].deviation,
        )
        for runs in cells
        if runs.key in values and not runs.failed and may_yet_win(refused.get(runs.cell.cell_id))
    ]
    return frozenset(pick_contenders(racers, within=within))


def moderate_scatter(rows: Sequence[CellRow], metric: Metric, assumed: RunScatter) -> RunScatter:
    """What is ``assumed`` of the machine, and what the cells that ran again show (Smyth 2004);
    ``rows`` are theirs.
    """
    estimates = [estimate_of(row, metric) for row in rows]
    known = [
        (estimate.count - 1, estimate.variation)
        for estimate in estimates
        if estimate and estimate.variation is not None
    ]
    degrees = KNOWN_DEGREES + sum(count for count, _ in known)
    squares = sum(count * variation**2 for count, variation in known)
    return replace(
        assumed,
        share=sqrt((KNOWN_DEGREES * assumed.share**2 + squares) / degrees),
        deviations=t_quantile(1 - SIGNIFICANCE / 2, degrees),
    )


def equalise_work(cells: Sequence[CellRuns], baseline: Cell) -> tuple[CellRuns, ...]:
    """Gives each run as many of its own examples as contain the work of the suite's examples in the
    reference cell.

    The reference is the baseline, or the first cell that was measured. Cells with another unit stay
    as they are: ``find_unlike_work`` names them.
    """
    first = sorted(cells, key=lambda runs: runs.cell.cell_id != baseline.cell_id)
    reference = next((work for runs in first if (work := work_of(runs))), None)
    if reference is None:
        return tuple(cells)
    return tuple(_with_work(runs, reference) for runs in cells)


def _with_work(runs: CellRuns, reference: tuple[str, float]) -> CellRuns:
    own = work_of(runs)
    if own is None or own[0] != reference[0] or own == reference:
        return runs
    factor = reference[1] / own[1]
    measured = (
        replace(result, examples=max(1, round(result.examples * factor)))
        for result in runs.measured
    )
    return replace(runs, measured=tuple(measured))


def work_of(runs: CellRuns) -> tuple[str, float] | None:
    """The unit of work (``tokens`` without padding, ``rows``, ``samples``), and the work in one
    example.

    None if nothing was measured, or if the unit is tokens and the log does not count them.
    """
    known = [
        (result.work_unit, amount)
        for result in runs.measured
        if (amount := result.work_per_example)
    ]
    return (known[0][0], fmean([amount for _, amount in known])) if known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What the runs show, before the verdict selects among the cells.

    ``cells`` and ``rows`` are of all cells, in their order. ``refused`` has for the id of a cell
    why it can't be recommended. The verdict selects among the cells of ``compared``.
    """

    baseline: Cell | None
    cells: tuple[CellRuns, ...]
    rows: tuple[CellRow, ...]
    metric: Metric
    model: TrialModel
    parities: tuple[LossParity, ...]
    refused: Mapping[str, str]
    compared: tuple[CellRuns, ...]
    #: Those that a race runs again, by their first runs and by the scatter of later ones; empty in
    #: a grid.
    contenders: frozenset[str] = frozenset()
    #: How far single runs scatter; in a grid as it is assumed.
    scatter: RunScatter = NO_SCATTER
    #: Why cells do unlike work, so that none is compared; None where all do the same.
    unlike: str | None = None

    @property
    def dropped(self) -> list[str]:
        """Cells that a race measured once, and may have recommended."""
        known = {*self.refused, *(runs.cell.cell_id for runs in self.compared)}
        return [runs.key for runs in self.cells if runs.measured and runs.cell.cell_id not in known]

    @property
    def passes(self) -> int:
        """How often a contender runs in a further job: more than once if a job carried runs of
        several cells.
        """
        carried = {
            (result.run.job_id, runs.cell.cell_id)
            for runs in self.cells
            for result in runs.results
            if result.run.job_id is not None
        }
        is_shared = len(carried) > len({job_id for job_id, _ in carried})
        return self.scatter.passes if is_shared else 1

    @property
    def samples_per_step(self) -> Mapping[str, int]:
        """Cell id → the samples of a step of all ranks, as measured; without unknown ones."""
        known = ((runs.cell.cell_id, runs.samples_per_step) for runs in self.cells)
        return {cell_id: samples for cell_id, samples in known if samples is not None}


def gather_evidence(
    suite: Suite,
    cells: Sequence[Cell],
    results: Sequence[RunResult],
    *,
    host_priors: HostPriors | None = None,
    hazards: Mapping[HazardKey, Hazard] | None = None,
) -> Evidence:
    """What the verdict rests on.

    Args:
        suite: of the execution.
        cells: of the suite, in their order.
        results: of their runs.
        host_priors: from the lab's history, where it has any.
        hazards: of capacity; None: as the results and the suite's expectations of spot say.
    """
    target = suite.goal.target
    wanted = suite.baseline_cell
    grouped = group_runs(suite, cells, results, hazards=hazards)
    # The time to a quality is comparable whatever the unit of work is.
    unlike = find_unlike_work(grouped, suite.workload) if target is None else None
    all_runs = equalise_work(grouped, wanted)
    measured = [runs for runs in all_runs if runs.measured]
    priors = {**STATED_PRIORS, **(host_priors or {})}
    figures = build_figures(all_runs, target, priors)
    is_priced = figures.columns[FigureColumn.USD]
    metric = choose_metric(
        suite.goal,
        [(runs.cell.settings.instance, runs.key in is_priced) for runs in measured],
    )
    model = correlated(fit_model(figures), metric.column)
    rows = tuple(build_row(runs, model, target) for runs in all_runs)
    parities = check_parities(suite.workload, all_runs, wanted)
    refused = find_refusals(rows, goal=suite.goal, metric=metric, parities=parities)
    if unlike is not None:
        refused |= {
            runs.cell.cell_id: unlike.reason
            for runs in measured
            if runs.cell.cell_id in unlike.cell_ids
        }
    scatters = (figures.scatter(runs.key, metric.column) for runs in measured)
    evidence = Evidence(
        baseline=next((cell for cell in cells if cell.cell_id == wanted.cell_id), None),
        cells=all_runs,
        rows=rows,
        metric=metric,
        model=model,
        parities=parities,
        refused=refused,
        compared=tuple(
            runs for runs in measured if runs.cell.cell_id not in refused and unlike is None
        ),
        scatter=max(scatters, default=NO_SCATTER),
        unlike=unlike.reason if unlike else None,
    )
    return _raced(evidence, priors) if suite.search.is_race else evidence


def _raced(evidence: Evidence, priors: HostPriors) -> Evidence:
    """A race compares the cells that it has run again or has to, after the first round all; it
    dropped the others.
    """
    model = evidence.model
    column = evidence.metric.column
    within = evidence.scatter.within()
    contenders = frozenset[str]()
    if evidence.unlike is None:
        contenders = find_contenders(
            evidence.cells,
            model.figures.columns[column],
            refused=evidence.refused,
            priors=priors,
            within=within,
        )
    evidence = replace(evidence, contenders=contenders)
    again = [
        runs
        for runs in evidence.compared
        if len(runs.measured) > 1 or runs.cell.cell_id in contenders
    ]
    if all(len(runs.measured) < 2 for runs in again):
        return evidence
    ran_again = {runs.cell.cell_id for runs in again}
    scatter = moderate_scatter(
        [row for row in evidence.rows if row.cell_id in ran_again],
        evidence.metric,
        evidence.scatter,
    )
    leader = min(again, key=lambda runs: model.level(runs.key, column))
    near = model.level(leader.key, column) + log1p(scatter.within(len(leader.measured)))
    long = {
        runs.key: model.figures.long_mean(runs.key, column) or inf for runs in evidence.compared
    }
    near_long = min(long.values()) + log1p(within)
    compared = tuple(
        runs
        for runs in evidence.compared
        if runs.cell.cell_id in ran_again
        or (not runs.failed and model.level(runs.key, column) <= near)
        or long[runs.key] < near_long
    )
    return replace(
        evidence,
        scatter=scatter,
        compared=compared,
        contenders=contenders | {runs.cell.cell_id for runs in compared},
    )


def check_parities(
    workload: Workload, cells: Sequence[CellRuns], baseline: Cell
) -> tuple[LossParity, ...]:
    """Compares each cell with the first one that should learn alike; the baseline comes first."""
    groups: dict[LearningKey, list[CellRuns]] = {}
    measured = (runs for runs in cells if runs.measured)
    for runs in sorted(measured, key=lambda runs: runs.cell.cell_id != baseline.cell_id):
        key = learning_key(runs.cell, workload, runs.samples_per_step)
        groups.setdefault(key, []).append(runs)
    parities = list[LossParity]()
    for group in groups.values():
        parities += check_loss_parities([runs.measured for runs in group])
    return tuple(parities)
