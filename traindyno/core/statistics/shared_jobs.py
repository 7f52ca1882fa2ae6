"""Cells that ran in the same jobs: what a job does to all of its runs, and to each by its place, is removed.

Runs of one job are on the same hosts, at about the same time. A run may also suffer from those before it (memory, page
cache, heat), and the first one of a job may be cold. Least squares remove a line over the places and what is special
about the first place. In the planner's orders, of which each second is reversed, both hardly depend on the cells.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from statistics import fmean

from traindyno.core.statistics.blocks import Common, common_of, spread_of_difference
from traindyno.core.statistics.estimates import Comparison, comparison_of
from traindyno.core.statistics.least_squares import invert

LEAST_JOBS = 2
# For each effect of the place that is removed; a pair with fewer of its own borrows one from all cells of its jobs.
LEAST_DEGREES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class InJob:
    """``value`` is a logarithm. ``place``: among the runs of the job, from 1; None if it is unknown."""

    value: float
    place: int | None


# By job, and by the pass through the cells within it.
JobBlocks = Mapping[str, InJob]
Matrix = Sequence[Sequence[float]]


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Cells that all ran in the same jobs: one row for each cell, one column for each job."""

    rows: Sequence[Sequence[InJob]]

    @property
    def degrees(self) -> int:
        """Residual degrees of freedom after cells and jobs, before effects of the place."""
        return (len(self.rows) - 1) * (len(self.rows[0]) - 1)

    @cached_property
    def effects(self) -> "Effects":
        """As many as the degrees of freedom allow, and as the orders tell apart."""
        known = all(each.place is not None for row in self.rows for each in row)
        most = min(len(EFFECTS), self.degrees // LEAST_DEGREES) if known else 0
        for count in range(most, 0, -1):
            terms = [_centred([_terms(row)[term] for row in self.rows]) for term in range(count)]
            inverse = invert([[_dot(one, other) for other in terms] for one in terms])
            if inverse is not None:
                values = _centred([[each.value for each in row] for row in self.rows])
                right = [_dot(term, values) for term in terms]
                sizes = [sum(a * b for a, b in zip(line, right, strict=True)) for line in inverse]
                return Effects(sizes=sizes, inverse=inverse)
        return Effects(sizes=(), inverse=())

    @cached_property
    def common(self) -> Common:
        return common_of([self.without_places(row) for row in self.rows])

    @property
    def left(self) -> float:
        """The share of the degrees of freedom that the effects of the place leave."""
        return 1 - len(self.effects.sizes) / self.degrees

    @cached_property
    def variance(self) -> float:
        """Variance of a run, pooled over all cells."""
        values = _centred([self.without_places(row) for row in self.rows])
        return _dot(values, values) / (self.degrees * self.left)

    def without_places(self, row: Sequence[InJob]) -> list[float]:
        shifts = [
            sum(size * value for size, value in zip(self.effects.sizes, of_place, strict=False))
            for of_place in zip(*_terms(row), strict=True)
        ]
        return [each.value - shift for each, shift in zip(row, shifts or [0.0] * len(row), strict=True)]

    def compare(self, pair: Sequence[Sequence[InJob]], inflation: float) -> Comparison:
        """The ratio of the first row to the second."""
        rows = [self.without_places(row) for row in pair]
        spread, degrees = spread_of_difference(rows, self.common)
        spread, degrees = spread / self.left, degrees * self.left
        if degrees < LEAST_DEGREES:
            borrowed = min(1.0, max(0.0, self.degrees * self.left - degrees))
            spread = (degrees * spread + borrowed * 2 * self.variance) / (degrees + borrowed)
            degrees += borrowed
        means = [[fmean(term) for term in _terms(row)] for row in pair]
        of_places = self.variance * self.effects.leverage([one - other for one, other in zip(*means, strict=True)])
        variance = inflation * spread / len(rows[0]) + of_places
        return comparison_of(fmean(rows[0]) - fmean(rows[1]), variance, degrees)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """``sizes``: of each effect of the place. ``inverse``: their covariance, in units of one run's variance."""

    sizes: Sequence[float]
    inverse: Matrix

    def leverage(self, apart: Sequence[float]) -> float:
        return sum(
            one * value * other
            for one, line in zip(apart, self.inverse, strict=False)
            for value, other in zip(line, apart, strict=False)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPool:
    """All cells that are compared. Their layout is computed once for each set of jobs."""

    cells: Sequence[JobBlocks] = ()
    _known: dict[tuple[str, ...], Layout] = field(default_factory=dict, init=False, repr=False, compare=False)

    def layout(self, jobs: Sequence[str]) -> Layout:
        key = tuple(jobs)
        if key not in self._known:
            rows = [[cell[job] for job in jobs] for cell in self.cells if all(job in cell for job in jobs)]
            self._known[key] = Layout(rows=rows)
        return self._known[key]


NO_JOBS = JobPool()


def compare_in_jobs(
    first: JobBlocks, second: JobBlocks, pool: JobPool, *, rounds: int, inflation: float
) -> Comparison | None:
    """The ratio of two cells within the jobs that both were in; None if they have fewer than two.

    ``rounds``: those that they have in common. None if more than one of them had the two in different jobs: a host that
    died splits one job, but cells that need several jobs are compared by all rounds.
    """
    shared = sorted(first.keys() & second.keys())
    if len(shared) < max(LEAST_JOBS, rounds - 1):
        return None
    pair = [[each[job] for job in shared] for each in (first, second)]
    layout = pool.layout(shared)
    return (layout if len(layout.rows) > 1 else Layout(rows=pair)).compare(pair, inflation)


def _terms(row: Sequence[InJob]) -> Matrix:
    """What the place may do: a line, and something else in the first one."""
    places = [each.place or 0 for each in row]
    return [[effect(place) for place in places] for effect in EFFECTS]


def _line(place: int) -> float:
    return float(place)


def _is_first(place: int) -> float:
    return float(place == 1)


EFFECTS = (_line, _is_first)


def _centred(rows: Matrix) -> list[float]:
    """What rows and columns leave, row by row."""
    columns = [fmean(column) for column in zip(*rows, strict=True)]
    total = fmean(columns)
    return list(
        chain.from_iterable(
            [value - fmean(row) - column + total for value, column in zip(row, columns, strict=True)] for row in rows
        )
    )


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))
