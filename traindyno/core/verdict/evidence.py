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
from traindyno.core.verdict.cell_trials import (
    CellTrials,
    Noise,
    estimate_cell,
    measure_noise,
    suite_trials,
)
from traindyno.core.verdict.confounds import LearningKey, learning_key
from traindyno.core.verdict.goal_metric import Metric, choose_metric, estimate_of, quantity_of
from traindyno.core.verdict.quantity import Quantity, projected_usd
from traindyno.core.verdict.unlike_work import find_unlike_work
from traindyno.figures.distributions import SIGNIFICANCE, t_quantile
from traindyno.figures.hosts import STATED_PRIORS, HostPriors
from traindyno.figures.in_job.race import Racer, pick_contenders
from traindyno.figures.in_job.run_scatter import KNOWN_DEGREES, NO_SCATTER, RunScatter

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
    trials: Sequence[CellTrials],
    quantity: Quantity,
    *,
    refused: Mapping[str, str],
    priors: HostPriors,
    within: float,
) -> frozenset[str]:
    """The ids of the cells. They are others if the leader is refused, or fails, in a further run.

    ``priors``: of hosts, as the first round knew them.
    """
    racers = [
        Racer(
            cell_id=each.cell.cell_id,
            job=(run := each.measured[0].run).job_id or run.run_id,
            value=values[0],
            host_deviation=priors[each.host_class].deviation,
        )
        for each in trials
        if each.measured and not each.failed and may_yet_win(refused.get(each.cell.cell_id))
        if (values := each.values(quantity))
    ]
    return frozenset(pick_contenders(racers, within=within))


def moderate_scatter(rows: Sequence[CellRow], metric: Metric, assumed: RunScatter) -> RunScatter:
    """What is ``assumed`` of the machine, and what the cells that ran again show (Smyth 2004);
    ``rows`` are theirs.
    """
    found = [each for row in rows if (each := estimate_of(row, metric))]
    known = [(each.count - 1, each.variation) for each in found if each.variation is not None]
    degrees = KNOWN_DEGREES + sum(count for count, _ in known)
    squares = sum(count * variation**2 for count, variation in known)
    return replace(
        assumed,
        share=sqrt((KNOWN_DEGREES * assumed.share**2 + squares) / degrees),
        deviations=t_quantile(1 - SIGNIFICANCE / 2, degrees),
    )


def equalise_work(trials: Sequence[CellTrials], baseline: Cell) -> tuple[CellTrials, ...]:
    """Gives each run as many of its own examples as contain the work of the suite's examples in the
    reference cell.

    The reference is the baseline, or the first cell that was measured. Cells with another unit stay
    as they are: ``find_unlike_work`` names them.
    """
    first = sorted(trials, key=lambda each: each.cell.cell_id != baseline.cell_id)
    reference = next((work for each in first if (work := work_of(each))), None)
    if reference is None:
        return tuple(trials)
    equal = []
    for each in trials:
        own = work_of(each)
        measured = each.measured
        if own is not None and own[0] == reference[0] and own != reference:
            factor = reference[1] / own[1]
            measured = tuple(
                replace(run, examples=max(1, round(run.examples * factor))) for run in measured
            )
        equal.append(each if measured is each.measured else replace(each, measured=measured))
    return tuple(equal)


def work_of(trials: CellTrials) -> tuple[str, float] | None:
    """The unit of work (``tokens`` without padding, ``rows``, ``samples``), and the work in one
    example.

    None if nothing was measured, or if the unit is tokens and the log does not count them.
    """
    known = [
        (each.work_unit, amount) for each in trials.measured if (amount := each.work_per_example)
    ]
    return (known[0][0], fmean([amount for _, amount in known])) if known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """``trials`` and ``rows``: of all cells, in their order.

    ``refused``: cell id → why it can't be recommended.

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
    #: Those that a race runs again, by their first runs and by the scatter of later ones; empty in
    #: a grid.
    contenders: frozenset[str] = frozenset()
    #: Of single runs; in a grid as it is assumed.
    scatter: RunScatter = NO_SCATTER
    #: Why cells do unlike work, so that none is compared; None where all do the same.
    unlike: str | None = None

    @property
    def dropped(self) -> list[CellTrials]:
        """Cells that a race measured once, and may have recommended."""
        known = {*self.refused, *(each.cell.cell_id for each in self.compared)}
        return [each for each in self.trials if each.measured and each.cell.cell_id not in known]

    @property
    def passes(self) -> int:
        """How often a contender runs in a further job: more than once if a job carried runs of
        several cells.
        """
        carried = {
            (result.run.job_id, each.cell.cell_id)
            for each in self.trials
            for result in each.results
            if result.run.job_id is not None
        }
        is_shared = len(carried) > len({job_id for job_id, _ in carried})
        return self.scatter.passes if is_shared else 1

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
    hazards: Mapping[HazardKey, Hazard] | None = None,
) -> Evidence:
    """``hazards`` of None: as the results and the suite's expectations of spot say."""
    wanted = suite.baseline_cell
    baseline = next((cell for cell in cells if cell.cell_id == wanted.cell_id), None)
    grouped = suite_trials(suite, cells, results, hazards=hazards)
    # The time to a quality is comparable whatever the unit of work is.
    unlike = find_unlike_work(grouped, suite.workload) if suite.goal.target is None else None
    trials = equalise_work(grouped, wanted)
    metric = choose_metric(
        suite.goal,
        [
            (each.cell.settings.instance, estimate_cell(each, projected_usd, Noise()) is not None)
            for each in trials
            if each.measured
        ],
    )
    priors = {**STATED_PRIORS, **(host_priors or {})}
    quantity = quantity_of(metric, suite.goal.target)
    noise = measure_noise(trials, quantity, priors)
    rows = tuple(build_row(each, noise, suite.goal.target) for each in trials)
    parities = check_parities(suite.workload, trials, wanted)
    refused = find_refusals(rows, goal=suite.goal, metric=metric, parities=parities)
    if unlike is not None:
        refused |= {
            each.cell.cell_id: unlike.reason
            for each in trials
            if each.measured and each.cell.cell_id in unlike.cell_ids
        }
    eligible = [
        each
        for each in trials
        if each.measured and each.cell.cell_id not in refused and unlike is None
    ]
    measured = [each for each in trials if each.measured]
    scatter = max((each.scatter(quantity) for each in measured), default=NO_SCATTER)
    within = scatter.within()
    contenders = (
        find_contenders(trials, quantity, refused=refused, priors=priors, within=within)
        if suite.search.is_race and unlike is None
        else frozenset[str]()
    )
    # A race compares the cells that it has run again or has to, after the first round all; it
    # dropped the others.
    again = [each for each in eligible if len(each.measured) > 1 or each.cell.cell_id in contenders]
    if suite.search.is_race and any(len(each.measured) > 1 for each in again):
        ran_again = [row for row, each in zip(rows, trials, strict=True) if each in again]
        scatter = moderate_scatter(ran_again, metric, scatter)
        leader = min(again, key=lambda each: noise.level(each, quantity))
        near = noise.level(leader, quantity) + log1p(scatter.within(len(leader.measured)))
        long = {each.cell.cell_id: each.confirmed_mean(quantity) or inf for each in eligible}
        near_long = min(long.values()) + log1p(within)
        eligible = [
            each
            for each in eligible
            if each in again
            or (not each.failed and noise.level(each, quantity) <= near)
            or long[each.cell.cell_id] < near_long
        ]
        contenders |= {each.cell.cell_id for each in eligible}
    return Evidence(
        baseline=baseline,
        trials=trials,
        rows=rows,
        metric=metric,
        noise=noise,
        parities=parities,
        refused=refused,
        compared=tuple(eligible),
        contenders=contenders,
        scatter=scatter,
        unlike=unlike.reason if unlike else None,
    )


def check_parities(
    workload: Workload, trials: Sequence[CellTrials], baseline: Cell
) -> tuple[LossParity, ...]:
    """Compares each cell with the first one that should learn alike; the baseline comes first."""
    groups: dict[LearningKey, list[CellTrials]] = {}
    measured = (each for each in trials if each.measured)
    for each in sorted(measured, key=lambda each: each.cell.cell_id != baseline.cell_id):
        groups.setdefault(learning_key(each.cell, workload, each.samples_per_step), []).append(each)
    return tuple(
        parity
        for group in groups.values()
        for parity in check_loss_parities([each.measured for each in group])
    )
