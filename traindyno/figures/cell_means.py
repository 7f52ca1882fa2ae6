"""The means of all cells from one model: cell + place in the job + block + draw of hosts +
error.
"""

from collections.abc import Sequence
from math import log
from statistics import fmean

from traindyno.figures.blocks import EFFECTS, LEAST_DEGREES, dot, invert
from traindyno.figures.hosts import STATED_PRIOR, Trial, draws_of

# Of the error's variance to that of a block: blocks without any error, and an error beside which
# blocks are nothing.
_LEAST_PENALTY = 1e-6
_MOST_PENALTY = 1e3
# inflation of an effect's variance: beyond, the orders don't tell the place from other effects
_MOST_ALIKE = 1e3
Column = list[float]


def cell_means(cells: Sequence[Sequence[Trial]]) -> list[float]:
    """Means of logarithms, in the order of the cells, each of which has a trial.

    Cells and places are fixed, blocks and draws of hosts random: the best linear unbiased estimates
    (Henderson 1975), with the stated spread of hosts for each block and draw, and for the error
    what least squares leave. Cells with a trial in each block differ as the means of their trials
    do. A cell without a trial in a slow block is no faster for it, and cells without a common block
    are compared over the spread of hosts.
    """
    owner = [index for index, cell in enumerate(cells) for _ in cell]
    values = [log(trial.value) for cell in cells for trial in cell]
    places = _places(cells)
    random = _shared(cells)
    for count in range(len(places), -1, -1):
        effects = [*places[:count], *random]
        within_cells = [_within(effect, owner) for effect in effects]
        gram = [[dot(one, other) for other in within_cells] for one in within_cells]
        inverse = _inverse(gram, count, _LEAST_PENALTY)
        if inverse is not None and all(
            inverse[fixed][fixed] * gram[fixed][fixed] < _MOST_ALIKE for fixed in range(count)
        ):
            break
    if not inverse:
        return [fmean(log(trial.value) for trial in cell) for cell in cells]
    observed = _within(values, owner)
    products = [dot(effect, observed) for effect in within_cells]
    sizes = [dot(line, products) for line in inverse]
    residual = [
        value - dot(sizes, of_trial)
        for value, of_trial in zip(observed, zip(*within_cells, strict=True), strict=True)
    ]
    used = sum(map(dot, inverse, gram))
    error = dot(residual, residual) / max(1.0, len(values) - len(cells) - used)
    penalty = min(_MOST_PENALTY, max(_LEAST_PENALTY, error / STATED_PRIOR.deviation**2))
    sizes = [dot(line, products) for line in _inverse(gram, count, penalty) or ()]
    without_effects: list[Column] = [[] for _ in cells]
    for cell, value, of_trial in zip(owner, values, zip(*effects, strict=True), strict=True):
        without_effects[cell].append(value - dot(sizes, of_trial))
    return [fmean(own) for own in without_effects]


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
    for index, (trial, draw) in enumerate(zip(trials, draws_of(cells), strict=True)):
        groups.setdefault(("draw", draw), set()).add(index)
        if trial.block is not None or trial.job is not None:
            groups.setdefault((trial.job, trial.block), set()).add(index)
    unique = {frozenset(members) for members in groups.values() if len(members) > 1}
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
