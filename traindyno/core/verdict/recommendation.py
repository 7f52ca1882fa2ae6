"""The best cell for the goal, how each other one compares with it, and its figures corrected for selection."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from traindyno.core.statistics.estimates import Comparison, Interval
from traindyno.core.statistics.hosts import pool_of
from traindyno.core.statistics.selection import (
    Relation,
    correct_for_selection,
    count_contenders,
    relate,
    trials_to_decide,
)
from traindyno.core.suite.goal import QualityTarget
from traindyno.core.suite.suite import Cell
from traindyno.core.verdict.cell_row import CellRow, with_prediction
from traindyno.core.verdict.cell_trials import CellTrials, Noise, compare_cells, estimate_cell
from traindyno.core.verdict.quantity import (
    Quantity,
    SecondsToTarget,
    UsdToTarget,
    projected_billable_seconds,
    projected_instance_hours,
    projected_seconds,
    projected_usd,
    samples_per_second,
    steps_per_second,
    tokens_per_second,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """``comparison`` is the recommended cell ÷ this one, of the goal's metric: less is better.

    ``is_across_hosts``: one of the two ran on one set of hosts, and the other one not on the same.
    """

    cell_id: str
    comparison: Comparison
    relation: Relation
    is_across_hosts: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """``rivals`` are all other eligible cells, the nearest first.

    ``needs_longer_trials``: with as long trials as these, no number of them decides, because it is open what the cells'
    rates are, or because only that makes the answer open. ``needs_other_hosts``: trials on the same hosts don't decide.
    """

    best: CellTrials
    rivals: tuple[Rival, ...]
    trials_to_decide: int | None
    needs_longer_trials: bool = False
    needs_other_hosts: bool = False

    @property
    def comparisons(self) -> list[Comparison]:
        return [rival.comparison for rival in self.rivals]

    def simultaneous(self, comparison: Comparison, significance: float) -> tuple[Interval | None, bool]:
        """The interval of one comparison and whether it detects a difference, although the best cell was selected.

        Any contender might have been selected instead, so the bound in favour of the best holds for all of them
        (Bonferroni's form of Dunnett's comparison with a control, 1955, with each cell's own variance).
        """
        tail = significance / 2 / (count_contenders(self.comparisons) + 1)
        interval = comparison.interval_with(significance / 2, tail)
        return interval, interval is not None and (interval.high < 1 or interval.low > 1)


def recommend(
    eligible: Sequence[CellTrials], quantity: Quantity, noise: Noise, *, tolerance: float, significance: float
) -> Recommendation | None:
    """The cell with the smallest ``quantity``, which all ``eligible`` cells have. None without eligible cells."""
    if not eligible:
        return None
    best, *others = sorted(eligible, key=lambda each: noise.level(each, quantity))
    comparisons = _compare_all(best, others, quantity, noise)
    relations = relate(comparisons, tolerance=tolerance, significance=significance)
    rivals = tuple(
        Rival(
            cell_id=other.cell.cell_id,
            comparison=comparison,
            relation=relation,
            is_across_hosts=comparison.host_variance is not None,
        )
        for other, comparison, relation in zip(others, comparisons, relations, strict=True)
    )
    needs_longer = _needs_longer_trials(best, others, comparisons, tolerance, significance)
    still_open = [other for other, rival in zip(others, rivals, strict=True) if rival.relation is Relation.OPEN]
    wanted, needs_hosts = None, False
    if still_open and not needs_longer:
        wanted, needs_hosts = _trials_to_decide(best, still_open, quantity, noise, tolerance)
    return Recommendation(
        best=best,
        rivals=rivals,
        trials_to_decide=wanted,
        needs_longer_trials=needs_longer,
        needs_other_hosts=needs_hosts,
    )


def _needs_longer_trials(
    best: CellTrials,
    others: Sequence[CellTrials],
    comparisons: Sequence[Comparison],
    tolerance: float,
    significance: float,
) -> bool:
    found = relate(comparisons, tolerance=tolerance, significance=significance)
    if Relation.OPEN not in found and Relation.UNKNOWN not in found:
        return False
    plain = [comparison.without_range() for comparison in comparisons]
    return Relation.OPEN not in relate(plain, tolerance=tolerance, significance=significance)


def _compare_all(best: CellTrials, others: Sequence[CellTrials], quantity: Quantity, noise: Noise) -> list[Comparison]:
    """The best cell ÷ each other one."""
    pool = pool_of([each.trials(quantity) for each in (best, *others)])
    found = (compare_cells(best, other, quantity, noise, pool) for other in others)
    return [comparison for comparison in found if comparison]


def against_baseline(found: Recommendation, baseline: Cell) -> Rival | None:
    return next((rival for rival in found.rivals if rival.cell_id == baseline.cell_id), None)


def corrected_row(
    found: Recommendation, rows: Sequence[CellRow], noise: Noise, target: QualityTarget | None, *, significance: float
) -> CellRow:
    """The best cell's row with the intervals of its time, cost and rates corrected for its selection at this look."""
    row = next(each for each in rows if each.cell_id == found.best.cell.cell_id)
    correction = correct_for_selection(found.comparisons, significance)
    row = replace(
        row,
        seconds=estimate_cell(found.best, projected_seconds, noise, correction),
        usd=estimate_cell(found.best, projected_usd, noise, correction),
    )
    return replace(
        with_prediction(row, found.best, noise, shift=correction.shift),
        instance_hours=estimate_cell(found.best, projected_instance_hours, noise, correction),
        samples_per_second=estimate_cell(found.best, samples_per_second, noise, correction.of_rate()),
        tokens_per_second=estimate_cell(found.best, tokens_per_second, noise, correction.of_rate()),
        steps_per_second=estimate_cell(found.best, steps_per_second, noise, correction.of_rate()),
        billable_seconds=estimate_cell(found.best, projected_billable_seconds, noise, correction),
        quality=row.quality
        if target is None
        else replace(
            row.quality,
            seconds=estimate_cell(found.best, SecondsToTarget(target=target), noise, correction),
            usd=estimate_cell(found.best, UsdToTarget(target=target), noise, correction),
        ),
    )


def _trials_to_decide(
    best: CellTrials, others: Sequence[CellTrials], quantity: Quantity, noise: Noise, tolerance: float
) -> tuple[int | None, bool]:
    """The trials of each cell in a suite of these cells only, if trials are independent; None if none decide.

    And whether they would if they ran on other hosts.
    """
    comparisons = _compare_all(best, others, quantity, Noise(cells=noise.cells, spreads=noise.spreads))
    most = max(len(each.values(quantity)) for each in (best, *others))
    found = trials_to_decide(comparisons, trials=most, tolerance=tolerance)
    alone = [each.without_hosts() for each in comparisons]
    is_by_hosts = found is None and trials_to_decide(alone, trials=most, tolerance=tolerance) is not None
    return found, is_by_hosts
