"""Regimes of a series of logarithms: ranges of steps within which the level does not change."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import sqrt

from traindyno.core.statistics.autocorrelation import robust_long_run_deviation

LEAST_CHANGE = 0.02
LEAST_REGIME_STEPS = 5
# The greatest of the statistics of all splits is compared, so its limit is above that of a single one. Andrews (1993)
# gives 3.0 for 5 % of false changes with 15 % trimmed at both ends; here almost nothing is trimmed.
_CRITICAL_DEVIATIONS = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Regime:
    """Values ``first`` to ``end``, exclusive, and their mean."""

    first: int
    end: int
    level: float


def find_regimes(levels: Sequence[float]) -> tuple[Regime, ...]:
    """Binary segmentation (Scott and Knott 1974; Vostrikova 1981) over the whole series.

    A change counts if it is at least 2 % and four of its standard errors. The error allows for autocorrelation:
    correlated noise that returns to its level after some steps is not a change.
    """
    sums = [0.0, *accumulate(levels)]
    pending, found = [(0, len(levels))], []
    while pending:
        first, end = pending.pop()
        split = _find_change(levels, sums, first, end)
        if split is None:
            found.append(Regime(first=first, end=end, level=(sums[end] - sums[first]) / (end - first)))
        else:
            pending += [(split, end), (first, split)]
    return tuple(found)


def _find_change(levels: Sequence[float], sums: Sequence[float], first: int, end: int) -> int | None:
    """The place of the largest change in this part; None if no change counts."""
    if end - first < 2 * LEAST_REGIME_STEPS:
        return None
    split = max(
        range(first + LEAST_REGIME_STEPS, end - LEAST_REGIME_STEPS + 1),
        key=lambda place: _statistic(sums, first, place, end),
    )
    before = (sums[split] - sums[first]) / (split - first)
    after = (sums[end] - sums[split]) / (end - split)
    if abs(after - before) < LEAST_CHANGE:
        return None
    limit = _CRITICAL_DEVIATIONS * robust_long_run_deviation(levels[first:end])
    return split if _statistic(sums, first, split, end) > limit else None


def _statistic(sums: Sequence[float], first: int, split: int, end: int) -> float:
    """The difference of the two means in units in which independent noise has its own deviation."""
    before, after = split - first, end - split
    difference = (sums[end] - sums[split]) / after - (sums[split] - sums[first]) / before
    return abs(difference) * sqrt(before * after / (end - first))
