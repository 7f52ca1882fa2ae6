"""Trials in blocks: what all trials of a round, or of one job, share is removed before cells are compared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isclose
from statistics import fmean

from traindyno.core.statistics.estimates import LEAST_COUNT, Comparison, comparison_of, satterthwaite, variance

Blocks = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """What the cells with a value in each of some blocks have in common there: the blocks' means.

    ``variances`` is the sum of the cells' own variances around them.
    """

    count: int
    means: Sequence[float]
    variances: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """All cells that are compared, by block. What they have in common is computed once for each set of blocks."""

    cells: Sequence[Blocks] = ()
    _known: dict[tuple[str, ...], Common] = field(default_factory=dict, init=False, repr=False, compare=False)

    def common(self, shared: Sequence[str]) -> Common:
        key = tuple(shared)
        if key not in self._known:
            rows = [[cell[block] for block in shared] for cell in self.cells if all(block in cell for block in shared)]
            self._known[key] = common_of(rows)
        return self._known[key]


NO_POOL = Pool()


def compare_in_blocks(first: Blocks, second: Blocks, pool: Pool, inflation: float) -> Comparison | None:
    """The ratio of two cells whose logarithms are given by block; None if they share fewer than three blocks.

    Only the blocks that they share count: a trial that was lost, or repeated in another round, has no partner.
    ``inflation`` multiplies the variance. ``pool`` has these cells and others that ran in the same blocks: from three
    cells on, they add degrees of freedom, unless one of the two has nearly all of the spread.
    """
    shared = sorted(first.keys() & second.keys())
    if len(shared) < LEAST_COUNT:
        return None
    rows = [[each[block] for block in shared] for each in (first, second)]
    common = pool.common(shared)
    difference = fmean(rows[0]) - fmean(rows[1])
    spread, degrees = spread_of_difference(rows, common)
    return comparison_of(difference, inflation * spread / len(shared), degrees)


def common_of(rows: Sequence[Sequence[float]]) -> Common:
    """Statistics of cells with a value in each block."""
    means = [fmean(block) for block in zip(*rows, strict=True)]
    return Common(count=len(rows), means=means, variances=sum(_own_variance(row, means) for row in rows))


def spread_of_difference(pair: Sequence[Sequence[float]], common: Common) -> tuple[float, float]:
    """The variance of two rows' differences within blocks, and its degrees of freedom."""
    found = [_paired(pair)] if common.count < LEAST_COUNT else [_paired(pair), _pooled(pair, common)]
    return max(found, key=lambda each: each[1])


def _paired(rows: Sequence[Sequence[float]]) -> tuple[float, float]:
    """The variance of the two rows' differences, and its degrees of freedom: Student's paired t test."""
    differences = [one - other for one, other in zip(rows[0], rows[1], strict=True)]
    return variance(differences), len(differences) - 1


def _pooled(rows: Sequence[Sequence[float]], common: Common) -> tuple[float, float]:
    """The same from each row's own variance around the blocks' means, as in Welch's test.

    A residual holds (count - 1) / count of the row's variance, and a share of all others': the larger of the estimate
    that is unbiased for equal spreads and of the one that is so for unequal ones (Grubbs 1948).
    """
    count = common.count
    own = [_own_variance(row, common.means) for row in rows]
    pair = own[0] + own[1]
    equal = pair * count / (count - 1)
    unequal = (pair - 2 * common.variances / (count * (count - 1))) * count / (count - 2)
    degrees = (len(common.means) - 1) * (count - 1) / count
    return max(equal, unequal), satterthwaite([(own[0], degrees), (own[1], degrees)])


def _own_variance(row: Sequence[float], means: Sequence[float]) -> float:
    return variance([value - mean for value, mean in zip(row, means, strict=True)])


def residuals(cells: Sequence[Mapping[str, float]]) -> list[list[float]]:
    """Each cell's logarithms in their order, less its mean and less what other cells have in common in that block."""
    centred = [{block: value - fmean(cell.values()) for block, value in cell.items()} for cell in cells if cell]
    common: dict[str, list[float]] = {}
    for cell in centred:
        for block, value in cell.items():
            common.setdefault(block, []).append(value)
    means = {block: fmean(values) if len(values) > 1 else 0.0 for block, values in common.items()}
    found = [[value - means[block] for block, value in cell.items()] for cell in centred]
    return [[0.0 if isclose(each, 0.0, abs_tol=1e-12) else each for each in cell] for cell in found]
