"""The similarity of two cells: main effects of all axes and their interactions.

The covariance is a product over the axes of 1 + weight × similarity: multiplied out, a constant, each axis alone, each
pair, each triple … (analysis-of-variance kernel: Stitson and others 1999). A weight near 0 removes an axis (automatic
relevance determination: MacKay 1994).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, sqrt

from traindyno.core.search.space import Axis

Table = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hyperparameters:
    """Natural logarithms of the variance of the values, of the variance of one trial, and for each axis of its weight
    and its length scale (a length of 1 is the whole axis; axes of names don't use it).
    """

    variance: float
    noise: float
    weights: tuple[float, ...]
    lengths: tuple[float, ...]


def similarity_tables(axes: Sequence[Axis], hyperparameters: Hyperparameters) -> tuple[Table, ...]:
    """One table for each axis: its factor of the correlation of two levels. It is 1 for a level with itself."""
    return tuple(
        _table(axis, exp(weight), exp(length))
        for axis, weight, length in zip(axes, hyperparameters.weights, hyperparameters.lengths, strict=True)
    )


def _table(axis: Axis, weight: float, length: float) -> Table:
    levels = range(axis.levels)
    return tuple(
        tuple((1 + weight * _similarity(axis, first, second, length)) / (1 + weight) for second in levels)
        for first in levels
    )


def _similarity(axis: Axis, first: int, second: int, length: float) -> float:
    """Matérn's function of order 3/2 for numbers, which allows sharp bends; for names, whether they are equal."""
    if axis.positions is None:
        return float(first == second)
    distance = sqrt(3) * abs(axis.positions[first] - axis.positions[second]) / length
    return (1 + distance) * exp(-distance)
