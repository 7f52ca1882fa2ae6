"""The best cell for the goal, and how each other one compares with it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from traindyno.core.statistics.estimates import Comparison, Interval
from traindyno.core.statistics.hosts import pool_of
from traindyno.core.statistics.selection import Relation, count_contenders, relate, trials_to_decide
from traindyno.core.verdict.cell_trials import CellTrials, Noise, compare_cells
from traindyno.core.verdict.quantity import Quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """``comparison`` is the recommended cell ÷ this one, of the goal's metric: less is better."""

    cell_id: str
    comparison: Comparison
    relation: Relation

    @property
    def is_across_hosts(self) -> bool:
        """One of the two ran on one set of hosts, and the other one not on the same."""
        return self.comparison.host_variance is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToDecide:
    """What would settle an open answer."""

    #: Trials of each open cell and of the recommended one that decide with a power of 80 %.
    trials: int | None = None
    #: Longer trials decide, and no number of these, because it is open what the cells' rates are,
    #: or because only that makes the answer open.
    longer_trials: bool = False
    #: Trials on the same hosts don't decide, however many.
    other_hosts: bool = False
    #: The script decides how long a trial is: measurement.max_steps has no effect.
    is_script: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """``rivals`` are all other eligible cells, the nearest first."""

    best: CellTrials
    rivals: tuple[Rival, ...]
    to_decide: ToDecide

    @property
    def comparisons(self) -> list[Comparison]:
        return [rival.comparison for rival in self.rivals]

    def simultaneous(
        self, comparison: Comparison, significance: float
    ) -> tuple[Interval | None, bool]:
        """The interval of one comparison and whether it detects a difference, although the best
        cell was selected.

        Any contender might have been selected instead, so the bound in favour of the best holds for
        all of them (Bonferroni's form of Dunnett's comparison with a control, 1955, with each
        cell's own variance).
        """
        tail = significance / 2 / (count_contenders(self.comparisons) + 1)
        interval = comparison.interval_with(significance / 2, tail)
        return interval, interval is not None and (interval.high < 1 or interval.low > 1)


def recommend(
    eligible: Sequence[CellTrials],
    quantity: Quantity,
    noise: Noise,
    *,
    tolerance: float,
    significance: float,
) -> Recommendation | None:
    """The cell with the smallest ``quantity``, which all ``eligible`` cells have.

    None without eligible cells.
    """
    if not eligible:
        return None
    long = {
        each.cell.cell_id: mean
        for each in eligible
        if (mean := each.confirmed_mean(quantity)) is not None
    }
    long = long if len(long) > 1 else {}

    def place(each: CellTrials) -> tuple[bool, float]:
        """Cells that long runs confirm come first: only they show what trials are too short for."""
        mean = long.get(each.cell.cell_id)
        level = (
            noise.level(each, quantity) if mean is None else mean + each.extra(quantity).log_factor
        )
        return mean is None, level

    best, *others = sorted(eligible, key=place)
    comparisons = _compare_all(best, others, quantity, noise)
    relations = relate(comparisons, tolerance=tolerance, significance=significance)
    share = significance / max(1, count_contenders(comparisons))
    rivals = tuple(
        Rival(
            cell_id=other.cell.cell_id,
            comparison=_as_decided(comparison, relation, significance, share),
            relation=relation,
        )
        for other, comparison, relation in zip(others, comparisons, relations, strict=True)
    )
    to_decide = ToDecide()
    plain = [comparison.without_range() for comparison in comparisons]
    if Relation.OPEN not in relate(plain, tolerance=tolerance, significance=significance):
        to_decide = ToDecide(
            longer_trials=Relation.OPEN in relations or Relation.UNKNOWN in relations
        )
    elif still_open := [
        each for each, relation in zip(others, relations, strict=True) if relation is Relation.OPEN
    ]:
        to_decide = _trials_to_decide(best, still_open, quantity, noise, tolerance)
    return Recommendation(best=best, rivals=rivals, to_decide=to_decide)


def _as_decided(
    comparison: Comparison, relation: Relation, significance: float, share: float
) -> Comparison:
    """With the interval of the test that decided: of a difference, or, one-sided at a contender's
    ``share``, of none that counts.
    """
    is_equal = relation in (Relation.EQUIVALENT, Relation.NOT_BETTER)
    tail = share if is_equal else significance / 2
    return replace(comparison, interval=comparison.interval_with(tail, tail))


def _compare_all(
    best: CellTrials, others: Sequence[CellTrials], quantity: Quantity, noise: Noise
) -> list[Comparison]:
    """The best cell ÷ each other one."""
    pool = pool_of([each.trials(quantity) for each in (best, *others)])
    found = (compare_cells(best, other, quantity, noise, pool) for other in others)
    return [comparison for comparison in found if comparison]


def _trials_to_decide(
    best: CellTrials,
    others: Sequence[CellTrials],
    quantity: Quantity,
    noise: Noise,
    tolerance: float,
) -> ToDecide:
    """In a suite of these cells only, if trials are independent."""
    comparisons = _compare_all(
        best, others, quantity, Noise(cells=noise.cells, spreads=noise.spreads)
    )
    most = max(len(each.values(quantity)) for each in (best, *others))
    found = trials_to_decide(comparisons, trials=most, tolerance=tolerance)
    alone = [each.without_hosts() for each in comparisons]
    is_by_hosts = (
        found is None and trials_to_decide(alone, trials=most, tolerance=tolerance) is not None
    )
    return ToDecide(trials=found, other_hosts=is_by_hosts)
