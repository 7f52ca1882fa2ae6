"""The suite's answer: which cell to use, by what margin, how certain, and what would change it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from math import exp
from typing import Any

from traindyno.core.costs.hazard import Hazard, HazardKey
from traindyno.core.costs.prices import sum_known
from traindyno.core.documents.stored import from_document, to_document
from traindyno.core.documents.versions import Format
from traindyno.core.measurement.loss_parity import LossParity
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.choices import Task
from traindyno.core.suite.goal import Goal
from traindyno.core.suite.suite import Suite
from traindyno.core.verdict.cell_quality import CellQuality
from traindyno.core.verdict.cell_row import CellRow, build_row
from traindyno.core.verdict.confounds import Confound, find_confound, threads_of
from traindyno.core.verdict.evidence import Evidence, gather_evidence
from traindyno.core.verdict.goal_metric import (
    Metric,
    Sensitivity,
    estimate_of,
    find_sensitivity,
)
from traindyno.figures.distributions import SIGNIFICANCE
from traindyno.figures.estimates import Estimate, Interval
from traindyno.figures.hosts import HostPriors
from traindyno.figures.in_job.run_scatter import NO_SCATTER, RunScatter
from traindyno.figures.model import Recommendation
from traindyno.figures.selection import Correction, Relation, correct_for_selection
from traindyno.figures.settle import Rival, ToDecide, simultaneous

VERDICT = Format(name="verdict", version=1)
# Where other work may stall runs, their noise is none that the tests know: recorded runs of equal
# cells keep to 1 % by it.
SIGNIFICANCE_OF_STALLED_RUNS = 0.007
# One trial has no spread.
LEAST_COMPARED = 2


class Finding(StrEnum):
    """How reliable the recommendation is."""

    RECOMMENDED = "recommended"
    WITHIN_TOLERANCE = "within_tolerance"
    UNDECIDED = "undecided"
    TOO_FEW_TRIALS = "too_few_trials"
    ONE_SEED = "one_seed"
    ONLY_ONE = "only_one"
    UNLIKE_WORK = "unlike_work"
    NONE_WITHIN_LIMIT = "none_within_limit"
    NONE_MEASURED = "none_measured"

    @property
    def is_settled(self) -> bool:
        return self in (Finding.RECOMMENDED, Finding.WITHIN_TOLERANCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstBaseline:
    """The recommended cell against the baseline's: ``ratio`` is recommended ÷ baseline.

    ``interval`` is corrected for the selection of the recommended cell.
    """

    cell_id: str
    ratio: float
    interval: Interval | None
    is_detected: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """Whether the cells did alike work, and what else differs between them."""

    #: Why cells do unlike work, so that none is recommended.
    unlike: str | None = None
    confounds: tuple[Confound, ...] = ()
    parities: tuple[LossParity, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingRuns:
    """The planned runs that have no result; nothing else of the verdict counts them.

    ``baseline`` is the id of the baseline's cell, if none of its runs was measured.
    """

    planned: int = 0
    run_ids: tuple[str, ...] = ()
    baseline: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer: ``recommended`` is the best cell by its mean, ``finding`` says how reliable that
    is.
    """

    suite_name: str
    goal: Goal
    metric: Metric
    examples: int
    tolerance: float
    #: The level of this look at the results.
    significance: float
    finding: Finding
    recommended: str | None
    #: All other cells that qualify, the nearest first, each compared with the recommended one.
    rivals: tuple[Rival, ...]
    to_decide: ToDecide
    against_baseline: AgainstBaseline | None
    #: Cell id → why a cell that was measured can't be recommended.
    refused: Mapping[str, str]
    #: All cells; the figures of the recommended one are corrected for its selection.
    rows: tuple[CellRow, ...]
    sensitivity: Sensitivity
    likeness: Likeness
    spent_usd: Decimal | None
    is_simulated: bool
    missing: MissingRuns
    #: Cell id → recommended ÷ it, of cells that a race left out after one run.
    dropped: Mapping[str, float]
    #: The scatter of single runs.
    scatter: RunScatter = NO_SCATTER
    #: The level of all looks together.
    level: float = SIGNIFICANCE

    @property
    def runner_up(self) -> Rival | None:
        return self.rivals[0] if self.rivals else None

    def related(self, *relations: Relation) -> tuple[Rival, ...]:
        return tuple(rival for rival in self.rivals if rival.relation in relations)

    @property
    def ranked_rows(self) -> tuple[CellRow, ...]:
        """The recommended cell first, then the others by the goal's metric."""

        def place(row: CellRow) -> float:
            estimate = estimate_of(row, self.metric)
            return estimate.mean if estimate else float("inf")

        return tuple(
            sorted(self.rows, key=lambda row: (row.cell_id != self.recommended, place(row)))
        )

    def row(self, cell_id: str) -> CellRow:
        return next(row for row in self.rows if row.cell_id == cell_id)

    @property
    def best(self) -> CellRow | None:
        """The row of the recommended cell."""
        return self.row(self.recommended) if self.recommended else None

    def estimate(self, metric: Metric) -> Estimate | None:
        """The metric of the recommended cell, corrected for its selection."""
        return estimate_of(self.best, metric) if self.best else None


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
    recommendation = model.recommend(
        [runs.key for runs in evidence.compared],
        metric.column,
        tolerance=suite.tolerance,
        significance=significance,
    )
    best = None
    beaten = list[CellRow]()
    if recommendation:
        beaten = _beaten_rows(rows, recommendation)
        rows = _rows_at_level(suite, evidence, recommendation, significance)
        best = next(row for row in rows if row.cell_id == recommendation.best)
    return Verdict(
        suite_name=suite.name,
        goal=suite.goal,
        metric=metric,
        examples=suite.workload.examples,
        tolerance=suite.tolerance,
        significance=significance,
        finding=_find(rows, recommendation, evidence)
        if evidence.unlike is None
        else Finding.UNLIKE_WORK,
        recommended=recommendation.best if recommendation else None,
        rivals=recommendation.rivals if recommendation else (),
        to_decide=replace(
            recommendation.to_decide if recommendation else ToDecide(),
            is_script=suite.workload.task is Task.SCRIPT,
        ),
        against_baseline=_against_baseline(recommendation, evidence, significance),
        refused=evidence.refused,
        rows=rows,
        sensitivity=find_sensitivity(best, beaten, metric, examples=suite.workload.examples),
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


def _beaten_rows(rows: Sequence[CellRow], recommendation: Recommendation) -> list[CellRow]:
    measured = {row.cell_id: row for row in rows}
    return [
        measured[rival.cell_id]
        for rival in recommendation.rivals
        if rival.relation is Relation.BEATEN
    ]


def _rows_at_level(
    suite: Suite, evidence: Evidence, recommendation: Recommendation, significance: float
) -> tuple[CellRow, ...]:
    """All cells have intervals of the level at which they are compared; those of the best one are
    corrected for its selection.
    """
    tail = significance / 2
    of_look = Correction(shift=0.0, upper_tail=tail, lower_tail=tail)
    of_best = correct_for_selection(recommendation.comparisons, significance)
    rows = []
    for runs in evidence.cells:
        correction = of_best if runs.key == recommendation.best else of_look
        row = build_row(runs, evidence.model, suite.goal.target, correction)
        if suite.limits.chain_jobs and runs.key == recommendation.best:
            # its run did the whole work: nothing is projected from a part of it
            row = replace(row, steadiness=replace(row.steadiness, measured_seconds=None))
        rows.append(row)
    return tuple(rows)


def verdict_document(verdict: Verdict) -> dict[str, Any]:
    return VERDICT.mark(to_document(verdict))


def parse_verdict(document: Mapping[str, Any]) -> Verdict:
    """Raises VersionUnknown.

    An earlier one has the corrected row of the recommended cell apart, as ``expected``.
    """
    stored = VERDICT.read(document)
    corrected = stored.pop("expected", None)
    if corrected is not None:
        stored["rows"] = [
            corrected if row["cell_id"] == corrected["cell_id"] else row for row in stored["rows"]
        ]
    return from_document(stored, Verdict)


def looks_of(suite: Suite, evidence: Evidence) -> int:
    """How often the results are judged: a grid once, at its end; a race after each round from the
    second on.
    """
    return (
        max(1, -(-(suite.measurement.trials - 1) // evidence.passes)) if suite.search.is_race else 1
    )


def _find(
    rows: Sequence[CellRow],
    recommendation: Recommendation | None,
    evidence: Evidence,
) -> Finding:
    if recommendation is None:
        return (
            Finding.NONE_WITHIN_LIMIT if any(row.trials for row in rows) else Finding.NONE_MEASURED
        )
    by_id = {row.cell_id: row for row in rows}
    compared = [recommendation.best, *(rival.cell_id for rival in recommendation.rivals)]
    relations = {rival.relation for rival in recommendation.rivals}
    if not relations:
        ended = [row for row in rows if row.outpaced and not row.trials]
        are_known = all(row.least_behind is not None for row in ended)
        return Finding.ONLY_ONE if are_known else Finding.TOO_FEW_TRIALS
    if Relation.UNKNOWN in relations:
        known = [by_id[cell_id] for cell_id in compared]
        if evidence.metric.is_to_target and any(
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
    column = evidence.metric.column
    long = {cell: model.figures.long_mean(cell, column) for cell in (best, *evidence.dropped)}

    def ratio(other: str) -> float:
        one = long[best]
        mean = long[other]
        if one is None or mean is None:
            return exp(model.level(best, column) - model.level(other, column))
        return exp(one - mean)

    return {other: ratio(other) for other in evidence.dropped}


def _against_baseline(
    recommendation: Recommendation | None, evidence: Evidence, significance: float
) -> AgainstBaseline | None:
    """An answer that does not say itself that the baseline is beaten allows for all correlation
    that is likely.
    """
    if recommendation is None or evidence.baseline is None:
        return None
    rival = next(
        (rival for rival in recommendation.rivals if rival.cell_id == evidence.baseline.cell_id),
        None,
    )
    if rival is None:
        return None
    count = next(
        len(runs.measured) for runs in evidence.compared if runs.key == recommendation.best
    )
    is_beaten = all(rival.relation is Relation.BEATEN for rival in recommendation.rivals)
    doubt = 1.0 if is_beaten else evidence.model.doubt(count)
    comparison = rival.comparison.inflated(doubt)
    interval, is_detected = simultaneous(recommendation.comparisons, comparison, significance)
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
            versions={
                runs.cell.cell_id: {**runs.versions, **threads_of(runs.cell, runs.measured)}
                for runs in evidence.cells
            },
        )
        for other in others
    )
    return tuple(confound for confound in confounds if confound)
