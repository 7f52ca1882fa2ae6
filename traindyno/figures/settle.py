"""What comparisons with the best cell settle, and what would settle the rest."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from traindyno.figures.estimates import Comparison, Interval
from traindyno.figures.selection import Relation, count_contenders, relate, trials_to_decide

# The comparisons of the best cell with these cells as if trials were independent, and the most
# trials that one of them has.
Independent = Callable[[Sequence[str]], tuple[list[Comparison], int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """Another cell; ``comparison`` is the best ÷ it, of a quantity of which less is better."""

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

    #: Trials of each open cell and of the best one that decide with a power of 80 %.
    trials: int | None = None
    #: Longer trials decide, and no number of these, because it is open what the cells' rates are,
    #: or because only that makes the answer open.
    longer_trials: bool = False
    #: Trials on the same hosts don't decide, however many.
    other_hosts: bool = False
    #: The script decides how long a trial is: measurement.max_steps has no effect.
    is_script: bool = False


def settle(
    comparisons: Mapping[str, Comparison],
    independent: Independent,
    *,
    tolerance: float,
    significance: float,
) -> tuple[tuple[Rival, ...], ToDecide]:
    """How each other cell stands to the best one, and what would decide what is open.

    Args:
        comparisons: by cell, the best cell ÷ it; the nearest first.
        independent: the same of some of the cells, as if trials were independent of each other.
        tolerance: a cell that is worse by no more than this share is as good.
        significance: of all that is said together.
    """
    known = list(comparisons.values())
    relations = relate(known, tolerance=tolerance, significance=significance)
    share = significance / max(1, count_contenders(known))
    rivals = tuple(
        Rival(
            cell_id=cell_id,
            comparison=_as_decided(comparison, relation, significance, share),
            relation=relation,
        )
        for (cell_id, comparison), relation in zip(comparisons.items(), relations, strict=True)
    )
    plain = [comparison.without_range() for comparison in known]
    if Relation.OPEN not in relate(plain, tolerance=tolerance, significance=significance):
        is_open = Relation.OPEN in relations or Relation.UNKNOWN in relations
        return rivals, ToDecide(longer_trials=is_open)
    still_open = [rival.cell_id for rival in rivals if rival.relation is Relation.OPEN]
    if not still_open:
        return rivals, ToDecide()
    return rivals, _trials(*independent(still_open), tolerance)


def _as_decided(
    comparison: Comparison, relation: Relation, significance: float, share: float
) -> Comparison:
    """With the interval of the test that decided: of a difference, or, one-sided at a contender's
    ``share``, of none that counts.
    """
    is_equal = relation in (Relation.EQUIVALENT, Relation.NOT_BETTER)
    tail = share if is_equal else significance / 2
    return replace(comparison, interval=comparison.interval_with(tail, tail))


def _trials(comparisons: Sequence[Comparison], most: int, tolerance: float) -> ToDecide:
    trials = trials_to_decide(comparisons, trials=most, tolerance=tolerance)
    alone = [comparison.without_hosts() for comparison in comparisons]
    is_by_hosts = (
        trials is None and trials_to_decide(alone, trials=most, tolerance=tolerance) is not None
    )
    return ToDecide(trials=trials, other_hosts=is_by_hosts)


def simultaneous(
    comparisons: Sequence[Comparison], comparison: Comparison, significance: float
) -> tuple[Interval | None, bool]:
    """The interval of one of the comparisons and whether it detects a difference, although the best
    cell was selected.

    Any contender might have been selected instead, so the bound in favour of the best holds for all
    of them (Bonferroni's form of Dunnett's comparison with a control, 1955, with each cell's own
    variance).
    """
    tail = significance / 2 / (count_contenders(comparisons) + 1)
    interval = comparison.interval_with(significance / 2, tail)
    return interval, interval is not None and (interval.high < 1 or interval.low > 1)
