"""Trials in blocks: what all trials of a round, or of a pass of a job, share is removed before
cells are compared.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from math import isclose
from statistics import fmean

from traindyno.figures.estimates import (
    LEAST_COUNT,
    Comparison,
    comparison_of,
    satterthwaite,
    variance,
)

LEAST_PIVOT = 1e-12
LEAST_JOBS = 2
# For each effect of the place that is removed; a pair with fewer of its own borrows one from all
# cells of its jobs.
LEAST_DEGREES = 3
Matrix = Sequence[Sequence[float]]
# A line, and being first.
EFFECTS: Sequence[Callable[[int], float]] = (float, lambda place: float(place == 1))


def invert(matrix: Sequence[Sequence[float]]) -> list[list[float]] | None:
    """Gauss-Jordan elimination with pivots; None for a singular matrix."""
    size = len(matrix)
    scale = max(abs(value) for line in matrix for value in line)
    lines = [
        [*line, *(float(row == column) for column in range(size))]
        for row, line in enumerate(matrix)
    ]
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(lines[row][column]))
        if abs(lines[pivot][column]) <= LEAST_PIVOT * scale:
            return None
        lines[column], lines[pivot] = lines[pivot], lines[column]
        divisor = lines[column][column]
        lines[column] = [value / divisor for value in lines[column]]
        for row in range(size):
            if row != column:
                factor = lines[row][column]
                lines[row] = [
                    a - factor * b for a, b in zip(lines[row], lines[column], strict=True)
                ]
    return [line[size:] for line in lines]


@dataclass(frozen=True, slots=True, kw_only=True)
class InBlock:
    """The logarithm of a cell's value in one block.

    ``place`` is the run's among those of a shared job, from 1; None elsewhere.
    """

    value: float
    place: int | None
    hosts: frozenset[str] = frozenset()


# By round, or by job and the pass through the cells within it.
Blocks = Mapping[str, InBlock]


def residuals(cells: Sequence[Blocks]) -> list[list[float]]:
    """Each cell's logarithms in their order, less its mean and less what other cells have in common
    in that block.
    """
    centred = [_less_its_mean(cell) for cell in cells if cell]
    common: dict[str, list[float]] = {}
    for cell in centred:
        for block, value in cell.items():
            common.setdefault(block, []).append(value)
    shared = {block: fmean(values) if len(values) > 1 else 0.0 for block, values in common.items()}
    residual = [[value - shared[block] for block, value in cell.items()] for cell in centred]
    return [
        [0.0 if isclose(value, 0.0, abs_tol=1e-12) else value for value in cell]
        for cell in residual
    ]


def _less_its_mean(cell: Blocks) -> dict[str, float]:
    mean = fmean(trial.value for trial in cell.values())
    return {block: trial.value - mean for block, trial in cell.items()}


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Cells that all ran in the same blocks: one row for each cell, one column for each block."""

    rows: Sequence[Sequence[InBlock]]

    @property
    def degrees(self) -> int:
        """Residual degrees of freedom after cells and blocks, before effects of the place."""
        return (len(self.rows) - 1) * (len(self.rows[0]) - 1)

    @cached_property
    def has_places(self) -> bool:
        return all(trial.place is not None for row in self.rows for trial in row)

    @cached_property
    def effects(self) -> "Effects":
        """As many as the degrees of freedom allow, and as the orders tell apart."""
        most = min(len(EFFECTS), self.degrees // LEAST_DEGREES) if self.has_places else 0
        for count in range(most, 0, -1):
            terms = [_centred([_terms(row)[term] for row in self.rows]) for term in range(count)]
            inverse = invert([[dot(one, other) for other in terms] for one in terms])
            if inverse is not None:
                values = _centred([[trial.value for trial in row] for row in self.rows])
                products = [dot(term, values) for term in terms]
                sizes = [dot(line, products) for line in inverse]
                return Effects(sizes=sizes, inverse=inverse)
        return Effects(sizes=(), inverse=())

    @cached_property
    def common(self) -> list[float]:
        """What the cells have in common in each block."""
        return [fmean(block) for block in zip(*map(self.without_places, self.rows), strict=True)]

    @cached_property
    def own_variances(self) -> float:
        """The sum of the cells' own variances around what they have in common."""
        return sum(self._own_variance(self.without_places(row)) for row in self.rows)

    @property
    def residual_share(self) -> float:
        """The share of the degrees of freedom that the effects of places leave."""
        return 1 - len(self.effects.sizes) / self.degrees

    @cached_property
    def variance_of_run(self) -> float:
        """Variance of a run, pooled over all cells."""
        values = _centred([self.without_places(row) for row in self.rows])
        return dot(values, values) / (self.degrees * self.residual_share)

    def without_places(self, row: Sequence[InBlock]) -> list[float]:
        shifts = [
            sum(size * value for size, value in zip(self.effects.sizes, of_place, strict=False))
            for of_place in zip(*_terms(row), strict=True)
        ]
        return [
            trial.value - shift
            for trial, shift in zip(row, shifts or [0.0] * len(row), strict=True)
        ]

    def compare(self, pair: Sequence[Sequence[InBlock]], inflation: float) -> Comparison:
        """The ratio of the first row to the second."""
        rows = [self.without_places(row) for row in pair]
        differences = [one - other for one, other in zip(*rows, strict=True)]
        # Student's paired t test
        spread = variance(differences)
        degrees = float(len(differences) - 1)
        if len(self.rows) >= LEAST_COUNT:
            pooled, pooled_degrees = self._pooled(rows)
            if pooled_degrees > degrees:
                spread = pooled
                degrees = pooled_degrees
        spread = spread / self.residual_share
        degrees = degrees * self.residual_share
        if degrees < LEAST_DEGREES and self.has_places:
            borrowed = min(1.0, max(0.0, self.degrees * self.residual_share - degrees))
            spread = (degrees * spread + borrowed * 2 * self.variance_of_run) / (degrees + borrowed)
            degrees += borrowed
        means = [[fmean(term) for term in _terms(row)] for row in pair]
        apart = [one - other for one, other in zip(*means, strict=True)]
        of_places = self.variance_of_run * self.effects.leverage(apart)
        error = inflation * spread / len(rows[0]) + of_places
        return comparison_of(fmean(rows[0]) - fmean(rows[1]), error, degrees)

    def _pooled(self, rows: Sequence[Sequence[float]]) -> tuple[float, float]:
        """The variance of two rows' differences, and its degrees of freedom, from each row's own
        variance around the blocks' means, as in Welch's test.

        A residual holds (count - 1) / count of the row's variance, and a share of all others': the
        larger of the estimate that is unbiased for equal spreads and of the one that is so for
        unequal ones (Grubbs 1948).
        """
        count = len(self.rows)
        own = [self._own_variance(row) for row in rows]
        pair = own[0] + own[1]
        equal = pair * count / (count - 1)
        unequal = (pair - 2 * self.own_variances / (count * (count - 1))) * count / (count - 2)
        degrees = (len(self.common) - 1) * (count - 1) / count
        return max(equal, unequal), satterthwaite([(own[0], degrees), (own[1], degrees)])

    def _own_variance(self, row: Sequence[float]) -> float:
        return variance([value - mean for value, mean in zip(row, self.common, strict=True)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """The sizes of the effects of the place.

    ``inverse`` is their covariance, in units of one run's variance.
    """

    sizes: Sequence[float]
    inverse: Matrix

    def leverage(self, apart: Sequence[float]) -> float:
        return sum(
            one * value * other
            for one, line in zip(apart, self.inverse, strict=False)
            for value, other in zip(line, apart, strict=False)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """All cells that are compared. Their layout is computed once for each set of blocks."""

    cells: Sequence[Blocks] = ()
    _known: dict[tuple[str, ...], Layout] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def layout(self, blocks: Sequence[str]) -> Layout:
        key = tuple(blocks)
        if key not in self._known:
            rows = [
                [cell[block] for block in blocks]
                for cell in self.cells
                if all(block in cell for block in blocks)
            ]
            self._known[key] = Layout(rows=rows)
        return self._known[key]


NO_POOL = Pool()


def compare_in_blocks(
    first: Blocks, second: Blocks, pool: Pool, *, inflation: float, least: int = LEAST_COUNT
) -> Comparison | None:
    """The ratio of two cells within the blocks that both were in; None if they share fewer than
    ``least``.

    A trial that was lost, or repeated in another round, has no partner. ``inflation`` multiplies
    the variance. ``pool`` has these cells and others that ran in the same blocks: from three cells
    on, they add degrees of freedom, unless one of the two has nearly all of the spread.
    """
    shared = sorted(first.keys() & second.keys())
    if len(shared) < least:
        return None
    pair = [[cell[block] for block in shared] for cell in (first, second)]
    layout = pool.layout(shared)
    return (layout if len(layout.rows) > 1 else Layout(rows=pair)).compare(pair, inflation)


def _terms(row: Sequence[InBlock]) -> Matrix:
    """What the place may do: a line, and something else in the first one."""
    places = [trial.place or 0 for trial in row]
    return [[effect(place) for place in places] for effect in EFFECTS]


def _centred(rows: Matrix) -> list[float]:
    """What rows and columns leave, row by row."""
    columns = [fmean(column) for column in zip(*rows, strict=True)]
    total = fmean(columns)
    return list(
        chain.from_iterable(
            [
                value - fmean(row) - column + total
                for value, column in zip(row, columns, strict=True)
            ]
            for row in rows
        )
    )


def dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))
