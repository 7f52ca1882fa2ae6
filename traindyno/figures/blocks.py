"""Trials in blocks: what all trials of a round, or of a pass of a job, share is removed before
cells are compared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from math import isclose, log
from statistics import fmean

from traindyno.figures.log_means import LEAST_COUNT, LogMean, total_variance, variance
from traindyno.figures.place_effects import EFFECTS, LEAST_DEGREES, Matrix, dot, invert, times
from traindyno.figures.trials import Trial, draws_of, repeats_in_blocks

# of jobs, or of blocks with several trials of a cell
LEAST_BLOCKS = 2


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


def blocks_of(trials: Sequence[Trial], *, by_job: bool = True) -> Blocks:
    """Logarithms by pass of a shared job, or by round; of repeats in a round their mean.

    A trial without a round is in no block. Without ``by_job``, all are by round.
    """
    blocks: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.block is not None:
            is_pass = by_job and trial.job is not None
            block = f"{trial.job} {trial.block}" if is_pass else trial.block
            blocks.setdefault(block, []).append(trial)
    return {block: _in_block(alike, by_job=by_job) for block, alike in blocks.items()}


def _in_block(alike: Sequence[Trial], *, by_job: bool) -> InBlock:
    """The repeats of a cell in one block; a job stands for hosts that are unknown."""
    return InBlock(
        value=fmean(log(trial.value) for trial in alike),
        place=alike[0].place if by_job and alike[0].job else None,
        hosts=frozenset(
            host for trial in alike for host in trial.hosts or filter(None, [trial.job])
        ),
    )


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
    def effects(self) -> tuple[list[float], list[list[float]]]:
        """The sizes of the effects of the place, and their covariance in units of one run's
        variance: as many as the degrees of freedom allow, and as the orders tell apart.
        """
        most = min(len(EFFECTS), self.degrees // LEAST_DEGREES) if self.has_places else 0
        for count in range(most, 0, -1):
            terms = [_centred([_terms(row)[term] for row in self.rows]) for term in range(count)]
            inverse = invert([times(terms, term) for term in terms])
            if inverse is not None:
                values = _centred([[trial.value for trial in row] for row in self.rows])
                return times(inverse, times(terms, values)), inverse
        return [], []

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
        return 1 - len(self.effects[0]) / self.degrees

    @cached_property
    def variance_of_run(self) -> float:
        """Variance of a run, pooled over all cells."""
        values = _centred([self.without_places(row) for row in self.rows])
        return dot(values, values) / (self.degrees * self.residual_share)

    def without_places(self, row: Sequence[InBlock]) -> list[float]:
        sizes, _ = self.effects
        terms = _terms(row)[: len(sizes)]
        return [
            trial.value - sum(size * term[index] for size, term in zip(sizes, terms, strict=True))
            for index, trial in enumerate(row)
        ]

    def difference(self, pair: Sequence[Sequence[InBlock]], inflation: float) -> LogMean:
        """The first row less the second."""
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
        _, inverse = self.effects
        means = [[fmean(term) for term in _terms(row)[: len(inverse)]] for row in pair]
        apart = [one - other for one, other in zip(*means, strict=True)]
        of_places = self.variance_of_run * dot(apart, times(inverse, apart))
        error = inflation * spread / len(rows[0]) + of_places
        return LogMean(
            mean=fmean(rows[0]) - fmean(rows[1]), variance=error, degrees_of_freedom=degrees
        )

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
        return max(equal, unequal), total_variance([(own[0], degrees), (own[1], degrees)])[1]

    def _own_variance(self, row: Sequence[float]) -> float:
        return variance([value - mean for value, mean in zip(row, self.common, strict=True)])


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


def pool_of(cells: Sequence[Sequence[Trial]]) -> Pool:
    return Pool(cells=[blocks_of(trials) for trials in cells])


def difference_in_blocks(
    first: Blocks, second: Blocks, pool: Pool, *, inflation: float, least: int = LEAST_COUNT
) -> LogMean | None:
    """The first cell less the second, within the blocks that both were in; None if they share fewer
    than ``least``.

    A trial that was lost, or repeated in another round, has no partner. ``inflation`` multiplies
    the variance. ``pool`` has these cells and others that ran in the same blocks: from three cells
    on, they add degrees of freedom, unless one of the two has nearly all of the spread.
    """
    shared = sorted(first.keys() & second.keys())
    if len(shared) < least:
        return None
    pair = [[cell[block] for block in shared] for cell in (first, second)]
    layout = pool.layout(shared)
    return (layout if len(layout.rows) > 1 else Layout(rows=pair)).difference(pair, inflation)


def difference_in_common(
    first: Sequence[Trial], second: Sequence[Trial], pool: Pool, *, inflation: float
) -> LogMean | None:
    """The first cell less the second, within passes of jobs that both were in, or else rounds.

    Hosts on which both ran in a block cancel; blocks that share other hosts are one observation.
    None if they have too few observations in common.
    """
    passes, rounds = (
        [blocks_of(trials, by_job=by_job) for trials in (first, second)] for by_job in (True, False)
    )
    in_jobs = passes[0].keys() & passes[1].keys()
    shared = rounds[0].keys() & rounds[1].keys()
    sides = rounds if 2 * len(in_jobs) <= len(shared) else passes
    blocks = sorted(sides[0].keys() & sides[1].keys())
    draws = draws_of([_hosts_apart(sides[0][block], sides[1][block]) for block in blocks])
    units: dict[int, list[str]] = {}
    for draw, block in zip(draws, blocks, strict=True):
        units.setdefault(draw, []).append(block)
    if len(units) < len(blocks):
        pool = NO_POOL
        sides = [_joined(side, [*units.values()]) for side in sides]
    of_jobs = sides is passes and any(trial.job for trial in first)
    is_repeated = any(map(repeats_in_blocks, (first, second)))
    least = LEAST_BLOCKS if of_jobs or is_repeated else LEAST_COUNT
    return difference_in_blocks(sides[0], sides[1], pool, inflation=inflation, least=least)


def _hosts_apart(one: InBlock, other: InBlock) -> frozenset[str]:
    """The hosts of two cells in a block; none if they cancel."""
    return frozenset() if one.hosts == other.hosts else one.hosts | other.hosts


def _joined(side: Blocks, units: Sequence[Sequence[str]]) -> dict[str, InBlock]:
    """The mean of each unit of blocks, under the name of its first block."""
    return {
        unit[0]: InBlock(value=fmean(side[block].value for block in unit), place=None)
        for unit in units
    }


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
