"""The means of all cells from one model: cell + place in the job + block + draw of hosts +
error.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt
from statistics import fmean

from traindyno.figures.beyond import DRIFT_P, NO_RANGE, Range
from traindyno.figures.distributions import t_quantile
from traindyno.figures.hosts import STATED_PRIOR
from traindyno.figures.place_effects import EFFECTS, LEAST_DEGREES, dot, invert, times
from traindyno.figures.trials import Trial, draws_of

# Bounds of the error's variance ÷ a block's: no error, or one beside which blocks are nothing.
_LEAST_PENALTY = 1e-6
_MOST_PENALTY = 1e3
# inflation of an effect's variance: beyond, the orders don't tell the place from other effects
_MOST_ALIKE = 1e3
Column = list[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedCells:
    """Means of logarithms, in the order of the cells.

    ``places``: what the place of a run in its job does, beside the mean place that the means are
    of; empty if it is no more than chance.
    """

    means: Sequence[float]
    places: Range = NO_RANGE


def fit_cells(cells: Sequence[Sequence[Trial]]) -> FittedCells:
    """The means of the cells, each of which has a trial.

    Cells and places are fixed, blocks and draws of hosts random: the best linear unbiased estimates
    (Henderson 1975), with the stated spread of hosts for each block and draw, and for the error
    what least squares leave. Blocks and draws that differ by more than that (Henderson's third
    method, 1953) are fixed too: trials without a partner in their block then tell nothing. Cells
    with a trial in each block differ as the means of their trials do. A cell without a trial in a
    slow block is no faster for it, and cells without a common block are compared over the spread of
    hosts.
    """
    owner = [index for index, cell in enumerate(cells) for _ in cell]
    values = [log(trial.value) for cell in cells for trial in cell]
    places = _places(cells)
    random = _shared(cells)
    for count in range(len(places), -1, -1):
        effects = [*places[:count], *random]
        within_cells = [_within(effect, owner) for effect in effects]
        gram = [times(within_cells, effect) for effect in within_cells]
        inverse = _inverse(gram, count, _LEAST_PENALTY)
        if inverse is not None and all(
            inverse[fixed][fixed] * gram[fixed][fixed] < _MOST_ALIKE for fixed in range(count)
        ):
            break
    if not inverse:
        return FittedCells(means=[fmean(log(trial.value) for trial in cell) for cell in cells])
    observed = _within(values, owner)
    products = times(within_cells, observed)
    least_squares = times(inverse, products)
    fitted = times([*zip(*within_cells, strict=True)], least_squares)
    residual = [value - fit for value, fit in zip(observed, fitted, strict=True)]
    used = sum(map(dot, inverse, gram))
    degrees = max(1.0, len(values) - len(cells) - used)
    error = dot(residual, residual) / degrees
    explained = dot(least_squares, products) - used * error
    is_stated = explained <= STATED_PRIOR.deviation**2 * _trace(gram, count)
    penalty = error / STATED_PRIOR.deviation**2 if is_stated else _LEAST_PENALTY
    penalty = min(_MOST_PENALTY, max(_LEAST_PENALTY, penalty))
    if penalty > _LEAST_PENALTY:
        inverse = _inverse(gram, count, penalty) or []
    sizes = times(inverse, products)
    fitted = times([*zip(*effects, strict=True)], sizes)
    without_effects: list[Column] = [[] for _ in cells]
    for cell, value, fit in zip(owner, values, fitted, strict=True):
        without_effects[cell].append(value - fit)
    return FittedCells(
        means=[fmean(own) for own in without_effects],
        places=_place_range(
            places[:count],
            sizes[:count],
            errors=[sqrt(error * line[index]) for index, line in enumerate(inverse[:count])],
            degrees=degrees,
        ),
    )


def _place_range(
    places: Sequence[Column], sizes: Sequence[float], *, errors: Sequence[float], degrees: float
) -> Range:
    """From the mean place to the others, by the effects that are more than chance."""
    if not places:
        return NO_RANGE
    reach = t_quantile(1 - DRIFT_P / 2, degrees)
    found = [
        size if abs(size) > reach * error else 0.0
        for size, error in zip(sizes, errors, strict=True)
    ]
    levels = [dot(found, of_trial) for of_trial in zip(*places, strict=True)]
    return Range(low=min(0.0, *levels), high=max(0.0, *levels))


def _trace(gram: Sequence[Column], fixed: int) -> float:
    """What the random effects' squares are, of variance 1, within cells."""
    return sum(gram[index][index] for index in range(fixed, len(gram)))


def _inverse(gram: Sequence[Column], fixed: int, penalty: float) -> list[Column] | None:
    """The inverse of the normal equations, whose first ``fixed`` effects are of places, the others
    random; None if they are singular.
    """
    matrix = [list(line) for line in gram]
    for index in range(fixed, len(matrix)):
        matrix[index][index] += penalty
    return invert(matrix) if matrix else []


def _places(cells: Sequence[Sequence[Trial]]) -> list[Column]:
    """A line over the places, around their mean, and being first, which a warm job is not; as many
    as there are degrees of freedom for.
    """
    trials = [trial for cell in cells for trial in cell]
    known = [trial.job is not None and trial.place is not None for trial in trials]
    jobs = {(trial.job, trial.block) for trial in trials if trial.job is not None}
    sharing = sum(any(trial.job is not None for trial in cell) for cell in cells)
    degrees = sum(known) - sharing - len(jobs) + 1
    fixed: list[Column] = []
    for effect in EFFECTS[: max(0, degrees // LEAST_DEGREES)]:
        values = [effect(trial.place or 0) for trial in trials]
        center = (
            0.0
            if fixed
            else fmean(value for value, is_known in zip(values, known, strict=True) if is_known)
        )
        fixed.append(
            [
                value - center if is_known else 0.0
                for value, is_known in zip(values, known, strict=True)
            ]
        )
    return fixed


def _shared(cells: Sequence[Sequence[Trial]]) -> list[Column]:
    """A column for each pass of a job, each round of trials whose job was their own, and each draw
    of hosts.
    """
    groups: dict[object, set[int]] = {}
    trials = [trial for cell in cells for trial in cell]
    draws = draws_of([trial.hosts for trial in trials])
    for index, (trial, draw) in enumerate(zip(trials, draws, strict=True)):
        groups.setdefault(("draw", draw), set()).add(index)
        if trial.block is not None or trial.job is not None:
            groups.setdefault((trial.job, trial.block), set()).add(index)
    unique = {frozenset(members) for members in groups.values() if len(members) > 1}
    if unique:
        # a trial that shares nothing has its own block's effect, as those with a partner have
        alone = set(range(len(trials))).difference(*unique)
        unique |= {frozenset([index]) for index in alone}
    return [
        [float(index in members) for index in range(len(trials))]
        for members in sorted(unique, key=sorted)
    ]


def _within(column: Sequence[float], owner: Sequence[int]) -> Column:
    """What the cells' own means leave."""
    sums: dict[int, list[float]] = {}
    for cell, value in zip(owner, column, strict=True):
        sums.setdefault(cell, []).append(value)
    means = {cell: fmean(values) for cell, values in sums.items()}
    return [value - means[cell] for cell, value in zip(owner, column, strict=True)]
