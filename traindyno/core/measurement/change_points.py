"""Regimes of a series of logarithms: ranges of steps between which the level jumps."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """The straight line of a part: ``slope`` around ``mean``, over ``count`` places."""

    mean: float
    slope: float
    count: int

    @property
    def squares(self) -> float:
        return self.count * (self.count**2 - 1) / 12


@dataclass(frozen=True, slots=True, kw_only=True)
class _Jump:
    """``size`` is the jump of a line with one jump at ``split``; ``deviations``: size in those of independent noise."""

    split: int
    size: float
    deviations: float


def find_regimes(levels: Sequence[float]) -> tuple[Regime, ...]:
    """Binary segmentation (Scott and Knott 1974; Vostrikova 1981) over the whole series.

    A change is a jump that a straight line leaves: a drift is none, however much it changes the level. It counts if it
    is at least 2 % and four of its standard errors. The error allows for autocorrelation: correlated noise that returns
    to its level after some steps is not a change.
    """
    sums = [0.0, *accumulate(levels)]
    pending, found = [(0, len(levels))], []
    while pending:
        first, end = pending.pop()
        split = _find_change(levels[first:end])
        if split is None:
            found.append(Regime(first=first, end=end, level=(sums[end] - sums[first]) / (end - first)))
        else:
            pending += [(first + split, end), (first, first + split)]
    return tuple(found)


def _find_change(levels: Sequence[float]) -> int | None:
    """The place of the largest jump in this part; None if none counts."""
    if len(levels) < 2 * LEAST_REGIME_STEPS:
        return None
    count = len(levels)
    mean, middle = sum(levels) / count, (count - 1) / 2
    products = sum((place - middle) * level for place, level in enumerate(levels))
    line = _Line(mean=mean, slope=products / (count * (count**2 - 1) / 12), count=count)
    jump = _largest_jump(levels, line)
    if abs(jump.size) < LEAST_CHANGE:
        return None
    # what the line with the jump leaves of each level, up to a constant
    slope = line.slope - jump.size * jump.split * (count - jump.split) / (2 * line.squares)
    left = [level - slope * place - jump.size * (place >= jump.split) for place, level in enumerate(levels)]
    return jump.split if jump.deviations > _CRITICAL_DEVIATIONS * robust_long_run_deviation(left) else None


def _largest_jump(levels: Sequence[float], line: _Line) -> _Jump:
    """Least squares of a line with one jump, at the split where the jump explains most."""
    count, before = line.count, list(accumulate(levels, initial=0.0))
    best = _Jump(split=0, size=0.0, deviations=-1.0)
    for split in range(LEAST_REGIME_STEPS, count - LEAST_REGIME_STEPS + 1):
        pairs = split * (count - split)
        left_over = before[-1] - before[split] - (count - split) * line.mean - line.slope * pairs / 2
        squares = pairs / count - pairs**2 / (4 * line.squares)
        deviations = abs(left_over) / sqrt(squares)
        if deviations > best.deviations:
            best = _Jump(split=split, size=left_over / squares, deviations=deviations)
    return best
