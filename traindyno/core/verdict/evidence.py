"""What the verdict is based on: each cell's trials, their spread, and the cells that may be
recommended.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, log1p, sqrt
from statistics import fmean

from traindyno.core.costs.prices import SECONDS_PER_HOUR
from traindyno.core.measurement.loss_parity import LossParity, ParityFinding
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.run.record import QualityTarget
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.goal import Goal
from traindyno.core.verdict.cell_row import CellQuality, CellRow
from traindyno.core.verdict.cell_runs import CellRuns
from traindyno.figures.distributions import SIGNIFICANCE, t_quantile
from traindyno.figures.hosts import HostPriors
from traindyno.figures.in_job.race import Racer, pick_contenders
from traindyno.figures.in_job.run_scatter import KNOWN_DEGREES, NO_SCATTER, RunScatter
from traindyno.figures.model import TrialModel
from traindyno.figures.table import FigureColumn

BREAKS_LIMIT = "it exceeds the goal's limit"
MAY_BREAK_LIMIT = "more than 5 % of its runs may exceed the goal's limit"
UNKNOWN_OF_LIMIT = "whether it meets the goal's limit is unknown"
MISSES_EVENT = (
    "its trials show no checkpoint or no evaluation, whose cost the full run's schedule needs"
)
LOSSES_DIFFER = "its losses differ from the reference's, so it did not do the same work"
_UNKNOWN = {
    FigureColumn.SECONDS: "its billed time is unknown",
    FigureColumn.INSTANCE_HOURS: "its billed time is unknown",
    FigureColumn.SECONDS_TO_TARGET: "the times of its jobs are unknown",
    FigureColumn.USD: "its price is unknown",
    FigureColumn.USD_TO_TARGET: "its price is unknown",
}


def choose_metric(goal: Goal, instances: Collection[str], *, is_priced: bool) -> FigureColumn:
    """The metric by which the goal compares cells. Instance hours replace cost if no price is known
    and all cells use one type.

    ``instances``: the types of the measured cells. ``is_priced``: the cost of one is known.
    """
    if goal.target is not None:
        return FigureColumn.SECONDS_TO_TARGET if goal.is_time else FigureColumn.USD_TO_TARGET
    if goal.is_time:
        return FigureColumn.SECONDS
    by_hours = not is_priced and len(instances) == 1
    return FigureColumn.INSTANCE_HOURS if by_hours else FigureColumn.USD


def find_refusals(
    rows: Sequence[CellRow],
    *,
    goal: Goal,
    metric: FigureColumn,
    parities: Sequence[LossParity],
) -> dict[str, str]:
    """Cell id → reason.

    If the goal is a quality, cells with other learning settings are compared by their time or cost
    to the target.
    """
    if goal.target is not None:
        reasons = {row.cell_id: _short_of(row, goal.target, metric) for row in rows if row.trials}
    else:
        reasons = {row.cell_id: _reason(row, goal, metric) for row in rows if row.trials}
        for parity in parities:
            if parity.finding is ParityFinding.DIFFERS:
                reasons[parity.cell_id] = LOSSES_DIFFER
    return {cell_id: reason for cell_id, reason in reasons.items() if reason}


def _short_of(row: CellRow, target: QualityTarget, metric: FigureColumn) -> str | None:
    """Why the time or the cost until the target is unknown."""
    quality = row.part(CellQuality)
    if quality.best is None:
        return f"no evaluation of it measured {target.quality}"
    if not quality.reached:
        return f"it never reached {target}: its best is {target.text(quality.best)}"
    if quality.reached < row.trials:
        return f"only {quality.reached} of its {row.trials} trials reached {target}"
    return _why_unknown(row, metric) if row.estimate(metric) is None else None


def _reason(row: CellRow, goal: Goal, metric: FigureColumn) -> str | None:
    """A limit is kept if 95 % of single runs keep it: by the upper end of their 90 % prediction."""
    if row.estimate(metric) is None:
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


def _why_unknown(row: CellRow, metric: FigureColumn) -> str:
    return MISSES_EVENT if row.steadiness.misses_event else _UNKNOWN[metric]


def equalise_work(cells: Sequence[CellRuns], baseline: Cell) -> tuple[CellRuns, ...]:
    """Gives each run as many of its own examples as contain the work of the suite's examples in the
    reference cell.

    The reference is the baseline, or the first cell that was measured. Cells with another unit stay
    as they are: ``find_unlike_work`` names them.
    """
    first = sorted(cells, key=lambda runs: runs.key != baseline.cell_id)
    reference = next((work for runs in first if (work := work_of(runs))), None)
    if reference is None:
        return tuple(cells)
    return tuple(_with_work(runs, reference) for runs in cells)


def _with_work(runs: CellRuns, reference: tuple[str, float]) -> CellRuns:
    own = work_of(runs)
    if own is None or own[0] != reference[0] or own == reference:
        return runs
    factor = reference[1] / own[1]

    def equalised(result: RunResult) -> RunResult:
        return replace(result, examples=max(1, round(result.examples * factor)))

    return replace(
        runs,
        measured=tuple(map(equalised, runs.measured)),
        confirmed=equalised(runs.confirmed) if runs.confirmed else None,
    )


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
    metric: FigureColumn
    model: TrialModel
    parities: tuple[LossParity, ...]
    refused: Mapping[str, str]
    compared: tuple[CellRuns, ...]
    #: Cells that a race runs again, by their first runs and the scatter of later ones; empty in a
    #: grid.
    contenders: frozenset[str] = frozenset()
    #: How far single runs scatter; in a grid as it is assumed.
    scatter: RunScatter = NO_SCATTER
    #: Why cells do unlike work, so that none is compared; None where all do the same.
    unlike: str | None = None

    @property
    def dropped(self) -> list[str]:
        """Cells that a race measured once, and may have recommended."""
        known = {*self.refused, *(runs.key for runs in self.compared)}
        return [runs.key for runs in self.cells if runs.measured and runs.key not in known]

    @property
    def passes(self) -> int:
        """How often a contender runs in a further job: more than once if a job carried runs of
        several cells.
        """
        carried = {
            (result.run.job_id, runs.key)
            for runs in self.cells
            for result in runs.results
            if result.run.job_id is not None
        }
        is_shared = len(carried) > len({job_id for job_id, _ in carried})
        return self.scatter.passes if is_shared else 1

    @property
    def samples_per_step(self) -> Mapping[str, int]:
        """Cell id → the samples of a step of all ranks, as measured; without unknown ones."""
        known = ((runs.key, runs.samples_per_step) for runs in self.cells)
        return {cell_id: samples for cell_id, samples in known if samples is not None}


def raced(evidence: Evidence, priors: HostPriors) -> Evidence:
    """A race compares the cells that it has run again or has to, after the first round all; it
    dropped the others.
    """
    model = evidence.model
    column = evidence.metric
    compared = evidence.compared
    if evidence.unlike is None:
        evidence = replace(evidence, contenders=_contenders(evidence, priors))
    if all(len(runs.measured) < 2 for runs in compared):
        return evidence
    levels = {
        runs.key: model.level(runs.key, column)
        for runs in compared
        if len(runs.measured) > 1 or runs.key in evidence.contenders
    }
    scatter = _moderated_scatter(evidence, levels)
    leader = next(runs for runs in compared if runs.key == min(levels, key=levels.__getitem__))
    # how near no other cell is, is said of a sole leader only
    margin = scatter if len(levels) == 1 else replace(scatter, nearer=0.0)
    near = levels[leader.key] + log1p(margin.within(len(leader.measured)))
    long = {runs.key: model.figures.of(runs.key, column).long_mean or inf for runs in compared}
    near_long = min(long.values()) + log1p(evidence.scatter.within())
    compared = tuple(
        runs
        for runs in compared
        if runs.key in levels
        or (not runs.failed and model.level(runs.key, column) <= near)
        or long[runs.key] < near_long
    )
    return replace(
        evidence,
        scatter=scatter,
        compared=compared,
        contenders=evidence.contenders | {runs.key for runs in compared},
    )


def _contenders(evidence: Evidence, priors: HostPriors) -> frozenset[str]:
    """The ids of the cells that run again. They are others if the leader is refused, or fails, in a
    further run.

    ``priors``: of hosts, as the first round knew them.
    """
    values = evidence.model.figures.columns[evidence.metric]
    racers = [
        Racer(
            cell_id=runs.key,
            job=runs.measured[0].run.job_id or runs.measured[0].run.run_id,
            value=values[runs.key][0].value,
            host_deviation=priors[runs.host_class].deviation,
        )
        for runs in evidence.cells
        if runs.key in values and not runs.failed and may_yet_win(evidence.refused.get(runs.key))
    ]
    return frozenset(pick_contenders(racers, within=evidence.scatter.within()))


def _moderated_scatter(evidence: Evidence, again: Collection[str]) -> RunScatter:
    """What is assumed of the machine, and what the cells show that ran ``again`` (Smyth 2004)."""
    assumed = evidence.scatter
    estimates = [row.estimate(evidence.metric) for row in evidence.rows if row.cell_id in again]
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
