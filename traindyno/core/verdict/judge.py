"""From the results of all runs to the verdict: which cell to use, by what margin, how certain."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp

from traindyno.core.costs.hazard import Hazard, HazardKey
from traindyno.core.costs.prices import sum_known
from traindyno.core.measurement.loss_parity import LossParity, check_loss_parities
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.run.workload import Workload
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.choices import Task
from traindyno.core.suite.suite import Suite
from traindyno.core.verdict.build_row import build_row
from traindyno.core.verdict.cell_row import CellQuality, CellRow
from traindyno.core.verdict.cell_runs import CellRuns, group_runs
from traindyno.core.verdict.conditions import Confound, Sensitivity
from traindyno.core.verdict.confounds import LearningKey, find_confound, learning_key, versions_of
from traindyno.core.verdict.evidence import (
    Evidence,
    choose_metric,
    equalise_work,
    find_refusals,
    raced,
)
from traindyno.core.verdict.figure_table import build_figures
from traindyno.core.verdict.sensitivity import find_sensitivity, overheads_of
from traindyno.core.verdict.unlike_work import find_unlike_work
from traindyno.core.verdict.verdict import AgainstBaseline, Finding, Likeness, MissingRuns, Verdict
from traindyno.figures.distributions import SIGNIFICANCE
from traindyno.figures.hosts import STATED_PRIORS, HostPriors
from traindyno.figures.in_job.run_scatter import NO_SCATTER
from traindyno.figures.judge import Recommendation, recommend
from traindyno.figures.model import correlated, fit_model
from traindyno.figures.selection import (
    Relation,
    ToDecide,
    simultaneous,
)
from traindyno.figures.table import TO_TARGET, FigureColumn

# Where other work may stall runs, their noise is none that the tests know: recorded runs of equal
# cells keep to 1 % by it.
SIGNIFICANCE_OF_STALLED_RUNS = 0.007
# One trial has no spread.
LEAST_COMPARED = 2


def judge(
    suite: Suite,
    cells: Sequence[Cell],
    results: Sequence[RunResult],
    *,
    host_priors: HostPriors | None = None,
    hazards: Mapping[HazardKey, Hazard] | None = None,
    planned: Sequence[str] = (),
) -> Verdict:
    """Pure: the same results always give the same verdict.

    ``host_priors`` are from the lab's history, where it has any. ``hazards`` of None: those that
    the results show. ``planned``: the ids of the runs of all rounds. A later round may repeat a run
    without a result.
    """
    evidence = gather_evidence(suite, cells, results, host_priors=host_priors, hazards=hazards)
    recorded = {result.run.run_id for result in results}
    run_ids = tuple(dict.fromkeys(planned))
    missing = tuple(run_id for run_id in run_ids if run_id not in recorded)
    return judge_evidence(suite, evidence, MissingRuns(planned=len(run_ids), run_ids=missing))


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
    metric = choose_metric(
        suite.goal,
        {runs.cell.settings.instance for runs in measured},
        is_priced=bool(figures.columns[FigureColumn.USD]),
    )
    model = correlated(fit_model(figures), metric)
    rows = tuple(build_row(runs, model, target) for runs in all_runs)
    parities = check_parities(suite.workload, all_runs, wanted)
    refused = find_refusals(rows, goal=suite.goal, metric=metric, parities=parities)
    if unlike is not None:
        refused |= {runs.key: unlike.reason for runs in measured if runs.key in unlike.cell_ids}
    scatters = (figures.of(runs.key, metric).scatter for runs in measured)
    evidence = Evidence(
        baseline=next((cell for cell in cells if cell.cell_id == wanted.cell_id), None),
        cells=all_runs,
        rows=rows,
        metric=metric,
        model=model,
        parities=parities,
        refused=refused,
        compared=tuple(runs for runs in measured if runs.key not in refused and unlike is None),
        scatter=max(scatters, default=NO_SCATTER),
        unlike=unlike.reason if unlike else None,
    )
    return raced(evidence, priors) if suite.search.is_race else evidence


def check_parities(
    workload: Workload, cells: Sequence[CellRuns], baseline: Cell
) -> tuple[LossParity, ...]:
    """Compares each cell with the first one that should learn alike; the baseline comes first."""
    groups: dict[LearningKey, list[CellRuns]] = {}
    measured = (runs for runs in cells if runs.measured)
    for runs in sorted(measured, key=lambda runs: runs.key != baseline.cell_id):
        key = learning_key(runs.cell, workload, runs.samples_per_step)
        groups.setdefault(key, []).append(runs)
    parities = list[LossParity]()
    for group in groups.values():
        parities += check_loss_parities([runs.measured for runs in group])
    return tuple(parities)


def looks_of(suite: Suite, evidence: Evidence) -> int:
    """How often the results are judged: a grid once, at its end; a race after each round from the
    second on.
    """
    return (
        max(1, -(-(suite.measurement.trials - 1) // evidence.passes)) if suite.search.is_race else 1
    )


def judge_evidence(suite: Suite, evidence: Evidence, missing: MissingRuns | None = None) -> Verdict:
    rows = evidence.rows
    metric = evidence.metric
    model = evidence.model
    baseline = evidence.baseline.cell_id if evidence.baseline else None
    missing = missing or MissingRuns()
    if any(
        row.cell_id == baseline and row.outcomes and not (row.trials or row.outpaced)
        for row in rows
    ):
        missing = replace(missing, baseline=baseline)
    # each look's share, without regard to what looks share with each other (Bonferroni)
    level = SIGNIFICANCE_OF_STALLED_RUNS if evidence.scatter.has_stalls else SIGNIFICANCE
    significance = level / looks_of(suite, evidence)
    recommendation = recommend(
        model,
        [runs.key for runs in evidence.compared],
        metric,
        tolerance=suite.tolerance,
        significance=significance,
        level=level,
    )
    sensitivity = Sensitivity()
    if recommendation:
        rows = _rows_at_level(suite, evidence, recommendation, significance)
        by_id = {row.cell_id: row for row in rows}
        rivals = recommendation.rivals
        sensitivity = find_sensitivity(
            by_id[recommendation.best],
            [by_id[rival.cell_id] for rival in rivals if rival.relation is Relation.BEATEN],
            metric,
            examples=suite.workload.examples,
            overheads={runs.key: overheads_of(runs, metric) for runs in evidence.compared},
        )
    return Verdict(
        suite_name=suite.name,
        goal=suite.goal,
        metric=metric,
        examples=suite.workload.examples,
        tolerance=suite.tolerance,
        significance=significance,
        finding=Finding.UNLIKE_WORK if evidence.unlike else _find(rows, recommendation, evidence),
        recommended=recommendation.best if recommendation else None,
        rivals=recommendation.rivals if recommendation else (),
        to_decide=replace(
            recommendation.to_decide if recommendation else ToDecide(),
            is_script=suite.workload.task is Task.SCRIPT,
        ),
        against_baseline=_against_baseline(recommendation, evidence, significance),
        refused=evidence.refused,
        rows=rows,
        sensitivity=sensitivity,
        likeness=Likeness(
            unlike=evidence.unlike,
            confounds=_find_confounds(recommendation, evidence, suite),
            parities=evidence.parities,
        ),
        spent_usd=sum_known([row.spent_usd for row in rows if row.outcomes]),
        is_simulated=any(result.is_simulated for runs in evidence.cells for result in runs.results),
        missing=missing,
        dropped=_ratios_of_dropped(recommendation.best, evidence) if recommendation else {},
        scatter=evidence.scatter,
        level=level,
    )


def _rows_at_level(
    suite: Suite, evidence: Evidence, recommendation: Recommendation, significance: float
) -> tuple[CellRow, ...]:
    """All cells have intervals of the level at which they are compared; those of the best one are
    corrected for its selection.
    """
    rows = []
    for runs in evidence.cells:
        correction = recommendation.correction(runs.key, significance)
        row = build_row(runs, evidence.model, suite.goal.target, correction)
        if suite.limits.chain_jobs and runs.key == recommendation.best:
            # its run did the whole work: nothing is projected from a part of it
            row = replace(row, steadiness=replace(row.steadiness, measured_seconds=None))
        rows.append(row)
    return tuple(rows)


def _find(
    rows: Sequence[CellRow],
    recommendation: Recommendation | None,
    evidence: Evidence,
) -> Finding:
    if recommendation is None:
        return (
            Finding.NONE_WITHIN_LIMIT if any(row.trials for row in rows) else Finding.NONE_MEASURED
        )
    relations = {rival.relation for rival in recommendation.rivals}
    if not relations:
        ended = [row for row in rows if row.outpaced and not row.trials]
        are_known = all(row.least_behind is not None for row in ended)
        return Finding.ONLY_ONE if are_known else Finding.TOO_FEW_TRIALS
    if Relation.UNKNOWN in relations:
        compared = {runs.key for runs in evidence.compared}
        known = [row for row in rows if row.cell_id in compared]
        if evidence.metric in TO_TARGET and any(
            row.part(CellQuality).repeats_a_seed for row in known
        ):
            return Finding.ONE_SEED
        return (
            Finding.TOO_FEW_TRIALS
            if any(row.trials < LEAST_COMPARED for row in known)
            else Finding.UNDECIDED
        )
    if Relation.OPEN in relations:
        return Finding.UNDECIDED
    return Finding.RECOMMENDED if relations == {Relation.BEATEN} else Finding.WITHIN_TOLERANCE


def _ratios_of_dropped(best: str, evidence: Evidence) -> dict[str, float]:
    """Cell id → the best one ÷ it."""
    model = evidence.model
    column = evidence.metric
    ratios = {}
    for other in evidence.dropped:
        one = model.figures.of(best, column).long_mean
        mean = model.figures.of(other, column).long_mean
        if one is None or mean is None:
            one = model.level(best, column)
            mean = model.level(other, column)
        ratios[other] = exp(one - mean)
    return ratios


def _against_baseline(
    recommendation: Recommendation | None, evidence: Evidence, significance: float
) -> AgainstBaseline | None:
    """An answer that does not say itself that the baseline is beaten allows for all correlation
    that is likely.
    """
    if recommendation is None or evidence.baseline is None:
        return None
    rivals = {rival.cell_id: rival for rival in recommendation.rivals}
    rival = rivals.get(evidence.baseline.cell_id)
    if rival is None:
        return None
    count = next(
        len(runs.measured) for runs in evidence.compared if runs.key == recommendation.best
    )
    is_beaten = all(rival.relation is Relation.BEATEN for rival in recommendation.rivals)
    doubt = 1.0 if is_beaten else evidence.model.doubt(count)
    interval, is_detected = simultaneous(
        recommendation.comparisons, rival.comparison, significance, inflation=doubt
    )
    return AgainstBaseline(
        cell_id=rival.cell_id,
        ratio=rival.comparison.ratio,
        interval=interval,
        is_detected=is_detected,
    )


def _find_confounds(
    recommendation: Recommendation | None, evidence: Evidence, suite: Suite
) -> tuple[Confound, ...]:
    """Confounds between the recommended cell and the runner-up, and between it and the baseline."""
    cells = {runs.key: runs.cell for runs in evidence.cells}
    baseline = evidence.baseline
    if recommendation is None or baseline is None:
        return ()
    best = cells[recommendation.best]
    wanted = dict.fromkeys(
        [*(rival.cell_id for rival in recommendation.rivals[:1]), baseline.cell_id]
    )
    others = [cells[cell_id] for cell_id in wanted if cell_id != recommendation.best]
    confounds = (
        find_confound(
            other,
            best,
            workload=suite.workload,
            samples_per_step=evidence.samples_per_step,
            versions={runs.key: versions_of(runs.cell, runs.facts) for runs in evidence.cells},
        )
        for other in others
    )
    return tuple(confound for confound in confounds if confound)
