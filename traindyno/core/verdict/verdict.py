"""The suite's answer: which cell to use, by what margin, how sure, and what would change it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from typing import Any

from traindyno.core.documents.stored import from_document, to_document
from traindyno.core.documents.versions import Format
from traindyno.core.measurement.hosts import STATED_PRIOR, HostSpread
from traindyno.core.measurement.loss_parity import LossParity, LossSpread
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.measurement.selection import Looks, Relation
from traindyno.core.measurement.statistics import Estimate, Interval
from traindyno.core.suite.cells import baseline_cell
from traindyno.core.suite.choices import Search
from traindyno.core.suite.suite import Cell, Goal, Suite
from traindyno.core.verdict.cell_row import CellRow, build_rows
from traindyno.core.verdict.cell_trials import CellTrials, Noise, group_trials, measure_noise
from traindyno.core.verdict.confounds import Confound, find_confound
from traindyno.core.verdict.equal_work import equalise_work, unlike_cells
from traindyno.core.verdict.goal_metric import Metric, choose_metric, estimate_of, quantity_of
from traindyno.core.verdict.parities import check_parities
from traindyno.core.verdict.recommendation import (
    Recommendation,
    Rival,
    against_baseline,
    corrected_row,
    recommend,
)
from traindyno.core.verdict.refusals import find_refusals
from traindyno.core.verdict.repeats import set_aside_repeated
from traindyno.core.verdict.scaling import fit_all
from traindyno.core.verdict.scaling_fit import ScalingFit
from traindyno.core.verdict.sensitivity import BreakEven, Crossover, find_break_evens, find_crossovers

VERDICT = Format(name="verdict", version=2, unmarked=1)
# The fewest trials that tell anything of a cell's spread with some precision.
FIRST_TRIALS = 3


class Finding(StrEnum):
    """How far the recommended cell can be relied on."""

    RECOMMENDED = "recommended"
    WITHIN_TOLERANCE = "within_tolerance"
    UNDECIDED = "undecided"
    CONTENDED = "contended"
    TOO_FEW_TRIALS = "too_few_trials"
    ONLY_ONE = "only_one"
    NONE_WITHIN_LIMIT = "none_within_limit"
    NONE_MEASURED = "none_measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstBaseline:
    """``ratio`` is recommended ÷ baseline. ``interval`` makes room for the recommended cell's selection."""

    cell_id: str
    ratio: float
    interval: Interval | None
    is_detected: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """``recommended`` is the best by its mean; ``finding`` says how far that can be relied on.

    ``rivals`` are all other cells that qualify, the nearest first, each compared with the recommended one. ``expected``
    are the recommended cell's figures, corrected for its having been picked; its row in ``rows`` has them as measured.
    ``trials_to_decide``: so many trials of the open cells and the recommended one would settle it (80 % power).
    ``refused`` are cells that measured well but can't be recommended: cell id → reason. ``significance`` is that of
    this look at the results; ``host_spread`` and ``serial_correlation`` say how trials were found to scatter.
    ``scaling``: curves of the time over the number of instances, where three sizes or more were measured.
    """

    suite_name: str
    goal: Goal
    metric: Metric
    examples: int
    tolerance: float
    significance: float
    finding: Finding
    recommended: str | None
    expected: CellRow | None
    rivals: tuple[Rival, ...]
    trials_to_decide: int | None
    against_baseline: AgainstBaseline | None
    refused: Mapping[str, str]
    rows: tuple[CellRow, ...]
    break_evens: tuple[BreakEven, ...]
    crossovers: tuple[Crossover, ...]
    confounds: tuple[Confound, ...]
    parities: tuple[LossParity, ...]
    host_spread: HostSpread
    serial_correlation: float
    spent_usd: Decimal | None
    is_simulated: bool
    scaling: tuple[ScalingFit, ...] = ()

    @property
    def runner_up(self) -> Rival | None:
        return self.rivals[0] if self.rivals else None

    @property
    def confidence(self) -> float | None:
        """That the recommended cell beats each other one: 1 - the largest p value. None if one is unknown."""
        known = [rival.comparison.p for rival in self.rivals if rival.comparison.p is not None]
        return 1 - max(known) if known and len(known) == len(self.rivals) else None

    def related(self, *relations: Relation) -> tuple[Rival, ...]:
        return tuple(rival for rival in self.rivals if rival.relation in relations)

    @property
    def ranked_rows(self) -> tuple[CellRow, ...]:
        """The recommended cell first, with its corrected figures, then the others by the goal's metric."""

        def place(row: CellRow) -> float:
            found = estimate_of(row, self.metric)
            return found.mean if found else float("inf")

        others = sorted((row for row in self.rows if row.cell_id != self.recommended), key=place)
        return (self.expected, *others) if self.expected else tuple(others)

    def row(self, cell_id: str) -> CellRow:
        return next(row for row in self.rows if row.cell_id == cell_id)

    def estimate(self, metric: Metric) -> Estimate | None:
        """Of the recommended cell, corrected for its selection."""
        return estimate_of(self.expected, metric) if self.expected else None


def judge(
    suite: Suite,
    cells: Sequence[Cell],
    results: Sequence[RunResult],
    *,
    host_prior: HostSpread = STATED_PRIOR,
    loss_spread: LossSpread | None = None,
) -> Verdict:
    """Pure: the same results always give the same verdict.

    ``host_prior`` and ``loss_spread`` are from the lab's history, where it has one.
    """
    baseline = _baseline(suite, cells)
    grouped = group_trials(cells, set_aside_repeated(suite, results))
    unlike = unlike_cells(grouped, baseline)
    trials = equalise_work(grouped, baseline)
    plain_rows = build_rows(trials, Noise())
    metric = choose_metric(suite.goal, plain_rows)
    quantity = quantity_of(metric, suite.goal.target)
    noise = measure_noise(trials, quantity, host_prior)
    rows = build_rows(trials, noise, suite.goal.target)
    parities = check_parities(trials, baseline, loss_spread)
    refused = find_refusals(rows, goal=suite.goal, metric=metric, parities=parities, unlike=unlike)
    eligible = [each for each in trials if each.measured and each.cell.cell_id not in refused]
    significance = looks_of(suite, trials).significance
    found = recommend(eligible, quantity, noise, tolerance=suite.tolerance, significance=significance)
    verdict = Verdict(
        suite_name=suite.name,
        goal=suite.goal,
        metric=metric,
        examples=suite.workload.examples,
        tolerance=suite.tolerance,
        significance=significance,
        finding=_find(rows, found),
        recommended=found.best.cell.cell_id if found else None,
        expected=corrected_row(found, rows, noise, suite.goal.target) if found else None,
        rivals=found.rivals if found else (),
        trials_to_decide=found.trials_to_decide if found else None,
        against_baseline=_against_baseline(found, baseline, noise, metric, significance),
        refused=refused,
        rows=rows,
        break_evens=(),
        crossovers=(),
        confounds=_find_confounds(found, trials, rows, suite),
        parities=parities,
        host_spread=noise.spread,
        serial_correlation=noise.serial_correlation,
        spent_usd=_spent(rows),
        is_simulated=any(row.is_simulated for row in rows),
        scaling=fit_all(cells, rows, examples=suite.workload.examples, tolerance=suite.tolerance),
    )
    return _with_sensitivity(verdict)


def verdict_document(verdict: Verdict) -> dict[str, Any]:
    return VERDICT.mark(to_document(verdict))


def parse_verdict(document: Mapping[str, Any]) -> Verdict:
    """Raises VersionUnknown: `traindyno report` makes a verdict of an older version again from the results."""
    return from_document(VERDICT.read(document), Verdict)


def looks_of(suite: Suite, trials: Sequence[CellTrials]) -> Looks:
    """A grid is judged once, at its end; elimination after each round from the first trials on."""
    if suite.search is not Search.ELIMINATE:
        return Looks()
    done = max((len(each.measured) + len(each.others) for each in trials), default=0)
    count = max(1, suite.measurement.trials - FIRST_TRIALS + 1)
    return Looks(count=count, index=min(count, max(1, done - FIRST_TRIALS + 1)))


def _baseline(suite: Suite, cells: Sequence[Cell]) -> Cell | None:
    wanted = baseline_cell(suite)
    return next((cell for cell in cells if cell.cell_id == wanted.cell_id), None)


def _find(rows: Sequence[CellRow], found: Recommendation | None) -> Finding:
    if found is None:
        return Finding.NONE_WITHIN_LIMIT if any(row.trials for row in rows) else Finding.NONE_MEASURED
    by_id = {row.cell_id: row for row in rows}
    compared = [found.best.cell.cell_id, *(rival.cell_id for rival in found.rivals)]
    relations = {rival.relation for rival in found.rivals}
    if not relations:
        return Finding.ONLY_ONE
    if any(by_id[cell_id].contended_trials for cell_id in compared):
        return Finding.CONTENDED
    if Relation.UNKNOWN in relations:
        return Finding.TOO_FEW_TRIALS
    if Relation.OPEN in relations:
        return Finding.UNDECIDED
    return Finding.RECOMMENDED if relations == {Relation.BEATEN} else Finding.WITHIN_TOLERANCE


def _against_baseline(
    found: Recommendation | None, baseline: Cell | None, noise: Noise, metric: Metric, significance: float
) -> AgainstBaseline | None:
    rival = against_baseline(found, baseline) if found and baseline else None
    if found is None or rival is None:
        return None
    interval, is_detected = found.simultaneous(rival.comparison, significance)
    return AgainstBaseline(
        cell_id=rival.cell_id, ratio=rival.comparison.ratio, interval=interval, is_detected=is_detected
    )


def _with_sensitivity(verdict: Verdict) -> Verdict:
    """Break-evens and crossovers for the cells that the recommended one beats: a difference has to be there first."""
    if verdict.recommended is None:
        return verdict
    best = verdict.row(verdict.recommended)
    beaten = [verdict.row(rival.cell_id) for rival in verdict.related(Relation.BEATEN)]
    return replace(
        verdict,
        break_evens=find_break_evens(best, beaten) if verdict.metric is Metric.USD else (),
        crossovers=find_crossovers(best, beaten, verdict.metric) if verdict.goal.target is None else (),
    )


def _spent(rows: Sequence[CellRow]) -> Decimal | None:
    costs = [row.spent_usd for row in rows if row.outcomes]
    return None if not costs or None in costs else sum((cost for cost in costs if cost is not None), Decimal(0))


def _find_confounds(
    found: Recommendation | None, trials: Sequence[CellTrials], rows: Sequence[CellRow], suite: Suite
) -> tuple[Confound, ...]:
    """Of the recommended cell against the runner-up and against the baseline."""
    cells = [each.cell for each in trials]
    baseline = _baseline(suite, cells)
    if found is None or baseline is None:
        return ()
    best = found.best.cell
    wanted = dict.fromkeys([*(rival.cell_id for rival in found.rivals[:1]), baseline.cell_id])
    others = [cell for cell_id in wanted for cell in cells if cell.cell_id == cell_id and cell != best]
    confounds = (
        find_confound(
            other,
            best,
            cells=cells,
            baseline=baseline,
            workload=suite.workload,
            warm_shares={row.cell_id: row.warm_share for row in rows},
            versions={each.cell.cell_id: each.versions for each in trials},
        )
        for other in others
    )
    return tuple(confound for confound in confounds if confound)
