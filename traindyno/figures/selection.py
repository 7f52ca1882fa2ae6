"""Selecting the best of several cells, with an indifference zone: the claims about it and about the
other cells.

- *It beats each other cell*: each comparison at the two-sided significance, uncorrected. The best
  is picked after looking, yet the claim needs every comparison at once, which is rarer than any of
  them (Gutmann and Maymin 1987; Hung and Fithian 2019).
- *No other cell is better by more than the tolerance*: one-sided tests of non-inferiority. Here the
  pick does count, because the best of many equals looks better than it is: the significance is
  shared among the contenders, the cells that the best does not clearly beat.
- *Two cells are within the tolerance of each other*: the same test in both directions (Schuirmann
  1987).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf, log
from statistics import fmean

from traindyno.figures.distributions import SIGNIFICANCE, t_quantile
from traindyno.figures.estimates import Comparison

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
    share = significance / max(1, count_contenders(comparisons))
    return tuple(
        _relation(comparison, tolerance, significance, share) for comparison in comparisons
    )


def count_contenders(comparisons: Sequence[Comparison]) -> int:
    """How many cells may be as good as the best one; an unknown spread is no reason against."""
    return sum(not _is_beaten(comparison, CONTENDER_P) for comparison in comparisons)


def _relation(
    comparison: Comparison, tolerance: float, significance: float, share: float
) -> Relation:
    if comparison.p is None:
        return Relation.UNKNOWN
    if _is_beaten(comparison, significance):
        return Relation.BEATEN
    is_not_better = (comparison.p_at_least(1 + tolerance) or 0.0) < share
    if not is_not_better:
        return Relation.OPEN
    is_not_worse = (comparison.p_at_most(1 / (1 + tolerance)) or 0.0) < share
    return Relation.EQUIVALENT if is_not_worse else Relation.NOT_BETTER


def _is_beaten(comparison: Comparison, p: float) -> bool:
    return comparison.p is not None and comparison.p < p and comparison.ratio < 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """The correction of the best cell's intervals for its selection: that of one run reaches by
    ``shift`` further.

    It is a logarithm. The tails are the error probabilities of its interval's two ends.
    """

    shift: float
    upper_tail: float
    lower_tail: float

    def of_rate(self) -> "Correction":
        """The same for a quantity of which more is better."""
        return Correction(shift=-self.shift, upper_tail=self.lower_tail, lower_tail=self.upper_tail)


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
    comparisons: Sequence[Comparison], *, trials: int, tolerance: float
) -> int | None:
    """Trials of each of these cells, in a suite of these cells only, that decide with a probability
    of 80 %.

    ``comparisons`` are of the best with the cells that are open, each measured with ``trials``.
    None if more than MOST_TRIALS, or if no spread is known. Stein's two-stage rule (1945): n ≥ s²
    (t(significance) + t(power))² ÷ d², with t at the degrees of freedom that s² has. For each cell
    the smaller number counts: to detect the difference seen, or to show that it is not better by
    more than the tolerance, at the worst point of what stays undecided. What hosts contribute
    stays, however many trials run on them.
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
    apart = t_quantile(1 - SIGNIFICANCE / 2, degrees) + missed
    within = t_quantile(1 - SIGNIFICANCE / len(spreads), degrees) + missed
    needs = []
    for comparison in comparisons:
        behind = max(0.0, -log(comparison.ratio) - comparison.range.high)
        zone = log(1 + tolerance) + max(0.0, -log(comparison.ratio)) - comparison.range.high
        allowed = max(behind / apart, max(0.0, zone) / within) ** 2 - (
            comparison.host_variance or 0.0
        )
        needs.append(1 / allowed if allowed > 0 else inf)
    if inf in needs:
        return None
    needed = max(trials + 1, -int(-variance * max(needs) // 1))
    return needed if needed <= MOST_TRIALS else None
