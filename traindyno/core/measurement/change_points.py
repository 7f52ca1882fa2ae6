"""Regimes of a series of logarithms: ranges of steps between which the level jumps."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import sqrt

from traindyno.figures.autocorrelation import robust_long_run_deviation

LEAST_CHANGE = 0.02
LEAST_REGIME_STEPS = 5
# The greatest of the statistics of all splits is compared, so its limit is above that of a single
# one. Andrews (1993) gives 3.0 for 5 % of false changes with 15 % trimmed at both ends; here almost
# nothing is trimmed.
_CRITICAL_DEVIATIONS = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Regime:
    """Values ``first`` to ``end``, exclusive, and their mean."""

    first: int
    end: int
    level: float


def find_regimes(levels: Sequence[float]) -> tuple[Regime, ...]:
    """Binary segmentation (Scott and Knott 1974; Vostrikova 1981) over the whole series.

    A change is a jump that a straight line leaves: a drift is none, however much it changes the
    level. It counts if it is at least 2 % and four of its standard errors. The error allows for
    autocorrelation: correlated noise that returns to its level after some steps is not a change.
    """
    sums = [0.0, *accumulate(levels)]
    pending = [(0, len(levels))]
    regimes = []
    while pending:
        first, end = pending.pop()
        split = _find_change(levels[first:end])
        if split is None:
            regimes.append(
                Regime(first=first, end=end, level=(sums[end] - sums[first]) / (end - first))
            )
        else:
            pending += [(first + split, end), (first, first + split)]
    return tuple(regimes)


def _find_change(levels: Sequence[float]) -> int | None:
    """The place of the largest jump in this part; None if none counts."""
    count = len(levels)
    if count < 2 * LEAST_REGIME_STEPS:
        return None
    mean = sum(levels) / count
    middle = (count - 1) / 2
    squares = count * (count**2 - 1) / 12
    slope = sum((place - middle) * level for place, level in enumerate(levels)) / squares
    before = list(accumulate(levels, initial=0.0))

    def jump_at(split: int) -> tuple[float, float]:
        """The jump of a line with one jump there, by least squares: in deviations of independent
        noise, and its size.
        """
        pairs = split * (count - split)
        left_over = before[-1] - before[split] - (count - split) * mean - slope * pairs / 2
        explained = pairs / count - pairs**2 / (4 * squares)
        return abs(left_over) / sqrt(explained), left_over / explained

    split = max(
        range(LEAST_REGIME_STEPS, count - LEAST_REGIME_STEPS + 1),
        key=lambda split: jump_at(split)[0],
    )
    deviations, size = jump_at(split)
    if abs(size) < LEAST_CHANGE:
        return None
    # what the line with the jump leaves of each level, up to a constant
    slope_left = slope - size * split * (count - split) / (2 * squares)
    left = [
        level - slope_left * place - size * (place >= split) for place, level in enumerate(levels)
    ]
    return split if deviations > _CRITICAL_DEVIATIONS * robust_long_run_deviation(left) else None
