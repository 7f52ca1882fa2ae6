"""The best cell for the goal, and how each other one compares with it."""

from collections.abc import Sequence
from dataclasses import dataclass

from traindyno.core.statistics.estimates import Comparison, Interval
from traindyno.core.statistics.hosts import pool_of
from traindyno.core.statistics.selection import Relation, count_contenders, relate, trials_to_decide
from traindyno.core.suite.suite import Cell
from traindyno.core.verdict.cell_trials import CellTrials, Noise, compare_cells
from traindyno.core.verdict.quantity import Quantity


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
