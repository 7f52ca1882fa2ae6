"""The suite's answer: which cell to use, by what margin, how sure, and what would change it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from itertools import combinations
from math import comb
from typing import Any

from traindyno.core.documents.stored import from_document, to_document
from traindyno.core.documents.versions import Format
from traindyno.core.measurement.loss_parity import LossParity, ParityFinding, check_loss_parity
from traindyno.core.measurement.many_comparisons import (
    SIGNIFICANCE,
    adjust_by_bonferroni,
    adjust_by_holm,
    trials_to_detect,
)
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.measurement.statistics import Comparison, compare
from traindyno.core.suite.cells import baseline_cell
from traindyno.core.suite.suite import Cell, Goal, Suite
from traindyno.core.verdict.cell_row import CellRow, CellTrials, build_rows, group_trials, pool_over
from traindyno.core.verdict.confounds import Confound, LearningKey, find_confound, learning_key
from traindyno.core.verdict.goal_metric import QUANTITIES, Metric, choose_metric, estimate_of, is_within_limit
from traindyno.core.verdict.sensitivity import BreakEven, Crossover, find_break_even, find_crossover

VERDICT = Format(name="verdict", version=1, unmarked=1)
MOST_COMPARED_CELLS = 60


class Finding(StrEnum):
    RECOMMENDED = "recommended"
    NO_DETECTABLE_DIFFERENCE = "no_detectable_difference"
    TOO_FEW_TRIALS = "too_few_trials"
    ONLY_ONE = "only_one"
    NONE_WITHIN_LIMIT = "none_within_limit"
    NONE_MEASURED = "none_measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """``comparison.ratio`` is first ÷ second of the goal's metric; ``adjusted_p`` makes room for all pairs."""

    first_cell_id: str
    second_cell_id: str
    comparison: Comparison
    adjusted_p: float | None

    @property
    def is_detected(self) -> bool:
        return self.adjusted_p is not None and self.adjusted_p < SIGNIFICANCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """``recommended`` is the best by its mean; ``finding`` says how far that can be relied on.

    ``margin`` compares it with the runner-up; ``level_with`` are the cells that can't be told from it, and
    ``trials_to_detect`` how many trials of each would tell it from the runner-up, were the difference as large as seen.
    ``refused`` are cells that measured well but didn't do the same work, or whose limit or price is unknown.
    """

    suite_name: str
    goal: Goal
    metric: Metric
    examples: int
    finding: Finding
    recommended: str | None
    runner_up: str | None
    margin: Pair | None
    level_with: tuple[str, ...]
    trials_to_detect: int | None
    against_baseline: Pair | None
    refused: Mapping[str, str]
    rows: tuple[CellRow, ...]
    pairs: tuple[Pair, ...]
    break_evens: tuple[BreakEven, ...]
    crossovers: tuple[Crossover, ...]
    confounds: tuple[Confound, ...]
    parities: tuple[LossParity, ...]
    spent_usd: Decimal | None
    is_simulated: bool

    @property
    def confidence(self) -> float | None:
        """That the recommended cell beats the runner-up, all comparisons taken together; None if not known."""
        return None if self.margin is None or self.margin.adjusted_p is None else 1 - self.margin.adjusted_p

    def row(self, cell_id: str) -> CellRow:
        return next(row for row in self.rows if row.cell_id == cell_id)


def judge(suite: Suite, cells: Sequence[Cell], results: Sequence[RunResult]) -> Verdict:
    """Pure: the same results always give the same verdict."""
    trials = group_trials(cells, results)
    rows = build_rows(trials)
    metric = choose_metric(suite.goal, rows)
    parities = _check_parities(trials, _baseline(suite, cells))
    refused = _refuse(rows, suite.goal, metric, parities)
    eligible = [each for each in trials if each.measured and each.cell.cell_id not in refused]
    ranked = _rank(eligible, rows, metric)
    pairs = _compare_all(ranked, metric)
    best = ranked[0].cell if ranked else None
    return _assemble(
        suite,
        cells,
        rows=rows,
        metric=metric,
        refused=refused,
        ranked=ranked,
        pairs=pairs,
        parities=parities,
        confounds=_find_confounds(
            best, [pair.second_cell_id for pair in pairs[:1]], trials=trials, rows=rows, suite=suite
        ),
    )


def verdict_document(verdict: Verdict) -> dict[str, Any]:
    return VERDICT.mark(to_document(verdict))


def parse_verdict(document: Mapping[str, Any]) -> Verdict:
    """Raises VersionUnknown."""
    return from_document(VERDICT.read(document), Verdict)


def _baseline(suite: Suite, cells: Sequence[Cell]) -> Cell | None:
    wanted = baseline_cell(suite)
    return next((cell for cell in cells if cell.cell_id == wanted.cell_id), None)


def _check_parities(trials: Sequence[CellTrials], baseline: Cell | None) -> tuple[LossParity, ...]:
    """Each cell against the first one that should learn alike, the baseline before all others."""
    order = sorted(
        (each for each in trials if each.measured),
        key=lambda each: baseline is None or each.cell.cell_id != baseline.cell_id,
    )
    references: dict[LearningKey, CellTrials] = {}
    parities = []
    for each in order:
        reference = references.setdefault(learning_key(each.cell), each)
        if reference is not each:
            parities.append(check_loss_parity(reference.measured, each.measured))
    return tuple(parities)


def _refuse(rows: Sequence[CellRow], goal: Goal, metric: Metric, parities: Sequence[LossParity]) -> dict[str, str]:
    refused = {}
    for row in rows:
        within = is_within_limit(row, goal)
        if not row.trials:
            continue
        if estimate_of(row, metric) is None:
            refused[row.cell_id] = "its price is unknown" if metric is Metric.USD else "its billed time is unknown"
        elif within is None:
            refused[row.cell_id] = "whether it keeps the limit is unknown"
        elif not within:
            refused[row.cell_id] = "it breaks the goal's limit"
    for parity in parities:
        if parity.finding is ParityFinding.DIFFERS:
            refused[parity.cell_id] = "its losses differ from the reference's: not the same work"
    return refused


def _rank(eligible: Sequence[CellTrials], rows: Sequence[CellRow], metric: Metric) -> list[CellTrials]:
    means = {row.cell_id: found.mean for row in rows if (found := estimate_of(row, metric))}
    return sorted(eligible, key=lambda each: means[each.cell.cell_id])


def _compare_all(ranked: Sequence[CellTrials], metric: Metric) -> tuple[Pair, ...]:
    """The better first. The correction makes room for having picked the best after the fact, so it counts every pair;
    of many cells, whose pairs are too many to be compared, only the best is compared with each other one.
    """
    quantity = QUANTITIES[metric]
    pooled = pool_over(ranked, quantity)
    has_all = len(ranked) <= MOST_COMPARED_CELLS
    chosen = combinations(ranked, 2) if has_all else ((ranked[0], other) for other in ranked[1:])
    compared = [
        (first, second, compare(first.values(quantity), second.values(quantity), pooled=pooled))
        for first, second in chosen
    ]
    known = [comparison.p for _, _, comparison in compared if comparison.p is not None]
    adjusted = iter(adjust_by_holm(known) if has_all else adjust_by_bonferroni(known, comb(len(ranked), 2)))
    return tuple(
        Pair(
            first_cell_id=first.cell.cell_id,
            second_cell_id=second.cell.cell_id,
            comparison=comparison,
            adjusted_p=None if comparison.p is None else next(adjusted),
        )
        for first, second, comparison in compared
    )


def _assemble(
    suite: Suite,
    cells: Sequence[Cell],
    *,
    rows: tuple[CellRow, ...],
    metric: Metric,
    refused: Mapping[str, str],
    ranked: Sequence[CellTrials],
    pairs: tuple[Pair, ...],
    parities: tuple[LossParity, ...],
    confounds: tuple[Confound, ...],
) -> Verdict:
    baseline = _baseline(suite, cells)
    best = ranked[0].cell if ranked else None
    margin = pairs[0] if pairs else None
    own_pairs = [pair for pair in pairs if best and pair.first_cell_id == best.cell_id]
    others = [row for row in rows if best and row.trials and row.cell_id != best.cell_id]
    finding = _find(rows, ranked, margin)
    costs = [row.spent_usd for row in rows if row.outcomes]
    by_id = {row.cell_id: row for row in rows}
    return Verdict(
        suite_name=suite.name,
        goal=suite.goal,
        metric=metric,
        examples=suite.workload.examples,
        finding=finding,
        recommended=best.cell_id if best else None,
        runner_up=margin.second_cell_id if margin else None,
        margin=margin,
        level_with=tuple(pair.second_cell_id for pair in own_pairs if not pair.is_detected),
        trials_to_detect=_trials_to_detect(margin) if finding is Finding.NO_DETECTABLE_DIFFERENCE else None,
        against_baseline=next(
            (pair for pair in own_pairs if baseline and pair.second_cell_id == baseline.cell_id), None
        ),
        refused=refused,
        rows=rows,
        pairs=pairs,
        break_evens=_break_evens(best, by_id, others) if metric is Metric.USD else (),
        crossovers=_crossovers(best, by_id, others, metric),
        confounds=confounds,
        parities=parities,
        spent_usd=None if not costs or None in costs else sum((cost for cost in costs if cost is not None), Decimal(0)),
        is_simulated=any(row.is_simulated for row in rows),
    )


def _find(rows: Sequence[CellRow], ranked: Sequence[CellTrials], margin: Pair | None) -> Finding:
    if not ranked:
        return Finding.NONE_WITHIN_LIMIT if any(row.trials for row in rows) else Finding.NONE_MEASURED
    if margin is None:
        return Finding.ONLY_ONE
    if margin.adjusted_p is None:
        return Finding.TOO_FEW_TRIALS
    return Finding.RECOMMENDED if margin.is_detected else Finding.NO_DETECTABLE_DIFFERENCE


def _trials_to_detect(margin: Pair | None) -> int | None:
    if margin is None or margin.comparison.spread is None:
        return None
    return trials_to_detect(margin.comparison.ratio, margin.comparison.spread)


def _break_evens(best: Cell | None, by_id: Mapping[str, CellRow], others: Sequence[CellRow]) -> tuple[BreakEven, ...]:
    if best is None:
        return ()
    return tuple(found for row in others if (found := find_break_even(by_id[best.cell_id], row)))


def _crossovers(
    best: Cell | None, by_id: Mapping[str, CellRow], others: Sequence[CellRow], metric: Metric
) -> tuple[Crossover, ...]:
    if best is None:
        return ()
    return tuple(found for row in others if (found := find_crossover(by_id[best.cell_id], row, metric=metric)))


def _find_confounds(
    best: Cell | None,
    second_ids: Sequence[str],
    *,
    trials: Sequence[CellTrials],
    rows: Sequence[CellRow],
    suite: Suite,
) -> tuple[Confound, ...]:
    """Of the recommended cell against the runner-up and against the baseline."""
    cells = [each.cell for each in trials]
    versions = {each.cell.cell_id: each.versions for each in trials}
    baseline = _baseline(suite, cells)
    if best is None or baseline is None:
        return ()
    wanted = dict.fromkeys([*second_ids, baseline.cell_id])
    others = [cell for cell_id in wanted for cell in cells if cell.cell_id == cell_id and cell != best]
    warm_shares = {row.cell_id: row.warm_share for row in rows}
    found = (
        find_confound(
            other,
            best,
            cells=cells,
            baseline=baseline,
            workload=suite.workload,
            warm_shares=warm_shares,
            versions=versions,
        )
        for other in others
    )
    return tuple(confound for confound in found if confound)
