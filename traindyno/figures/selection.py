"""Selecting the best of several cells, with an indifference zone: the claims about it and about the
other cells.

- *It beats each other cell*: each comparison at the two-sided significance, uncorrected. The best
  is picked after looking, yet the claim needs every comparison at once, which is rarer than any of
  them (Gutmann and Maymin 1987; Hung and Fithian 2019).
- *It beats some of them*: here the pick counts, because the best and the worst of many equals look
  further apart than they are. The significance is shared among all pairs; a cell that is beaten
  leaves the family, and the next one is tested in the rest (Holm 1979).
- *No other cell is better by more than the tolerance*: one-sided tests of non-inferiority. Here the
  pick does count, because the best of many equals looks better than it is: the significance is
  shared among the contenders, the cells that the best does not clearly beat.
- *Two cells are within the tolerance of each other*: the same test in both directions (Schuirmann
  1987).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from math import inf, log
from statistics import fmean

from traindyno.figures.distributions import SIGNIFICANCE, t_quantile
from traindyno.figures.estimates import Comparison, Correction, Interval, interval_of

# A cell is a contender unless it is behind at this two-sided level; chosen so that no simulation
# errs above 5 %.
CONTENDER_P = 0.25
POWER = 0.8
MOST_TRIALS = 200


class Relation(StrEnum):
    """The relation of another cell to the best.

    Equivalent cells are also not better; beaten ones may be either.
    """

    BEATEN = "beaten"
    EQUIVALENT = "equivalent"
    NOT_BETTER = "not_better"
    OPEN = "open"
    UNKNOWN = "unknown"


def relate(
    comparisons: Sequence[Comparison], *, tolerance: float, significance: float
) -> tuple[Relation, ...]:
    """How each other cell relates to the best one.

    ``comparisons`` are best ÷ other of a quantity of which less is better.
    """
    tested = _tested(comparisons, tolerance, significance)
    return tuple(relation for relation, _ in tested)


def _tested(
    comparisons: Sequence[Comparison], tolerance: float, significance: float
) -> list[tuple[Relation, float]]:
    """Each relation, and the probability of each tail in the test that decided: of a difference,
    or, one-sided at a contender's share, of none that counts.
    """
    share = significance / max(1, count_contenders(comparisons))
    tested = []
    for comparison, level in zip(comparisons, _levels(comparisons, significance), strict=True):
        relation = _relation(comparison, tolerance, level, share)
        is_equal = relation in (Relation.EQUIVALENT, Relation.NOT_BETTER)
        tested.append((relation, share if is_equal else level / 2))
    return tested


def _levels(comparisons: Sequence[Comparison], significance: float) -> list[float]:
    """The two-sided level at which each cell is tested against the best.

    It is the significance if all are beaten at it. Otherwise each beaten cell leaves the pairs, the
    farthest behind first, until one is not.
    """
    if all(_is_beaten(comparison, significance) for comparison in comparisons):
        return [significance] * len(comparisons)
    levels = [0.0] * len(comparisons)
    level = 0.0
    is_beaten = True
    order = sorted(range(len(comparisons)), key=lambda place: _p_behind(comparisons[place]))
    for beaten, place in enumerate(order):
        if is_beaten:
            left = len(order) - beaten
            level = significance / (left * (left + 1) / 2)
        levels[place] = level
        is_beaten = is_beaten and _is_beaten(comparisons[place], level)
    return levels


def _p_behind(comparison: Comparison) -> float:
    """Of a cell that is behind the best; 1 otherwise."""
    return comparison.p if comparison.p is not None and comparison.ratio < 1 else 1.0


def count_contenders(comparisons: Sequence[Comparison]) -> int:
    """How many cells may be as good as the best one; an unknown spread is no reason against."""
    return sum(not _is_beaten(comparison, CONTENDER_P) for comparison in comparisons)


def _relation(comparison: Comparison, tolerance: float, level: float, share: float) -> Relation:
    if comparison.p is None:
        return Relation.UNKNOWN
    if _is_beaten(comparison, level):
        return Relation.BEATEN
    is_not_better = (comparison.p_at_least(1 + tolerance) or 0.0) < share
    if not is_not_better:
        return Relation.OPEN
    is_not_worse = (comparison.p_at_most(1 / (1 + tolerance)) or 0.0) < share
    return Relation.EQUIVALENT if is_not_worse else Relation.NOT_BETTER


def _is_beaten(comparison: Comparison, p: float) -> bool:
    return comparison.p is not None and comparison.p < p and comparison.ratio < 1


def correct_for_selection(
    comparisons: Sequence[Comparison], significance: float = SIGNIFICANCE
) -> Correction:
    """The winner's curse: the best of several cells that can't be distinguished is partly the best
    by chance.

    One run of it reaches towards the mean of the cells that it is not clearly ahead of (empirical
    Bayes; Efron and Morris 1975), and the upper end of its mean holds for all of them at once
    (Bonferroni). A clear winner keeps both. ``significance`` is this look's share: a search that
    may stop at any look has as many chances as looks.
    """
    rivals = [
        comparison
        for comparison in comparisons
        if comparison.standard_error is not None and not _is_beaten(comparison, SIGNIFICANCE)
    ]
    tail = significance / 2 / (len(rivals) + 1)
    behind = [-log(rival.ratio) for rival in rivals]
    if not rivals or not any(behind):
        return Correction(shift=0.0, upper_tail=tail, lower_tail=significance / 2)
    center = sum(behind) / (len(rivals) + 1)
    spread = (center**2 + sum((value - center) ** 2 for value in behind)) / len(rivals)
    error = (
        fmean([rival.standard_error**2 for rival in rivals if rival.standard_error is not None]) / 2
    )
    return Correction(
        shift=min(1.0, error / spread) * center, upper_tail=tail, lower_tail=significance / 2
    )


def trials_to_decide(
    comparisons: Sequence[Comparison],
    *,
    trials: int,
    tolerance: float,
    level: float = SIGNIFICANCE,
    other_hosts: bool = False,
) -> int | None:
    """Trials of each of these cells, in a suite of these cells only, that decide with a probability
    of 80 %, at this level.

    ``comparisons`` are of the best with the cells that are open, each measured with ``trials``.
    None if more than MOST_TRIALS, or if no spread is known. Stein's two-stage rule (1945): n ≥ s²
    (t(significance) + t(power))² ÷ d², with t at the degrees of freedom that s² has. For each cell
    the smaller number counts: to detect the difference seen, or to show that it is not better by
    more than the tolerance, at the worst point of what stays undecided. What hosts contribute
    stays, however many trials run on them, unless these run on ``other_hosts``.
    """
    spreads = [
        (
            (comparison.standard_error**2 - (comparison.host_variance or 0.0)) * trials,
            comparison.degrees_of_freedom,
        )
        for comparison in comparisons
        if comparison.standard_error is not None and comparison.degrees_of_freedom is not None
    ]
    if len(spreads) < len(comparisons) or not spreads:
        return None
    variance = fmean([variance for variance, _ in spreads])
    degrees = max(fmean([degrees for _, degrees in spreads]), float(len(spreads) * (trials - 1)))
    missed = t_quantile(1 - (1 - POWER) / len(spreads), degrees)
    apart = t_quantile(1 - level / 2, degrees) + missed
    within = t_quantile(1 - level / len(spreads), degrees) + missed
    needs = []
    for comparison in comparisons:
        behind = max(0.0, -log(comparison.ratio) - comparison.range.high)
        zone = log(1 + tolerance) + max(0.0, -log(comparison.ratio)) - comparison.range.high
        of_hosts = 0.0 if other_hosts else comparison.host_variance or 0.0
        allowed = max(behind / apart, max(0.0, zone) / within) ** 2 - of_hosts
        needs.append(1 / allowed if allowed > 0 else inf)
    if inf in needs:
        return None
    needed = max(trials + 1, -int(-variance * max(needs) // 1))
    return needed if needed <= MOST_TRIALS else None


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
    comparisons: Mapping[str, Comparison], *, tolerance: float, significance: float
) -> tuple[Rival, ...]:
    """How each other cell stands to the best one.

    Args:
        comparisons: by cell, the best cell ÷ it; the nearest first.
        tolerance: a cell that is worse by no more than this share is as good.
        significance: of all that is said together.
    """
    tested = _tested([*comparisons.values()], tolerance, significance)
    return tuple(
        Rival(
            cell_id=cell_id,
            comparison=replace(comparison, interval=comparison.interval_with(tail, tail)),
            relation=relation,
        )
        for (cell_id, comparison), (relation, tail) in zip(comparisons.items(), tested, strict=True)
    )


def only_longer_trials_decide(
    rivals: Sequence[Rival], *, tolerance: float, significance: float
) -> bool:
    """Whether an answer is open, and would not be without what trials can't decide."""
    plain = [rival.comparison.without_range() for rival in rivals]
    if Relation.OPEN in relate(plain, tolerance=tolerance, significance=significance):
        return False
    return any(rival.relation in (Relation.OPEN, Relation.UNKNOWN) for rival in rivals)


def further_trials(
    comparisons: Sequence[Comparison], most: int, tolerance: float, level: float
) -> ToDecide:
    """What settles these comparisons, which are open; ``most``: trials that one of the cells
    has.
    """
    count = partial(trials_to_decide, comparisons, trials=most, tolerance=tolerance, level=level)
    trials = count()
    elsewhere = count(other_hosts=True)
    return ToDecide(trials=trials, other_hosts=trials is None and elsewhere is not None)


def simultaneous(
    comparisons: Sequence[Comparison],
    comparison: Comparison,
    significance: float,
    inflation: float = 1.0,
) -> tuple[Interval | None, bool]:
    """The interval of one of the comparisons and whether it detects a difference, although the best
    cell was selected.

    Any contender might have been selected instead, so the bound in favour of the best holds for all
    of them (Bonferroni's form of Dunnett's comparison with a control, 1955, with each cell's own
    variance). ``inflation`` multiplies the variance of the trials.
    """
    tail = significance / 2 / (count_contenders(comparisons) + 1)
    inflated = comparison.difference.inflated(inflation)
    interval = interval_of(inflated, comparison.range, significance / 2, tail)
    return interval, interval is not None and (interval.high < 1 or interval.low > 1)
