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
    shared = _shared(cells)
    left = _within(values, owner)
    for count in range(len(places), -1, -1):
        raw = [*places[:count], *shared]
        columns = [_within(column, owner) for column in raw]
        gram = [[dot(one, other) for other in columns] for one in columns]
        inverse = _inverse(gram, count, _LEAST_PENALTY)
        if inverse is not None and all(
            inverse[place][place] * gram[place][place] < _MOST_ALIKE for place in range(count)
        ):
            break
    if not inverse:
        return [fmean(log(trial.value) for trial in cell) for cell in cells]
    right = [dot(column, left) for column in columns]
    effects = [dot(line, right) for line in inverse]
    rest = [
        value - dot(effects, row)
        for value, row in zip(left, zip(*columns, strict=True), strict=True)
    ]
    used = sum(map(dot, inverse, gram))
    error = dot(rest, rest) / max(1.0, len(values) - len(cells) - used)
    penalty = min(_MOST_PENALTY, max(_LEAST_PENALTY, error / STATED_PRIOR.deviation**2))
    effects = [dot(line, right) for line in _inverse(gram, count, penalty) or ()]
    found: list[Column] = [[] for _ in cells]
    for cell, value, row in zip(owner, values, zip(*raw, strict=True), strict=True):
        found[cell].append(value - dot(effects, row))
    return [fmean(each) for each in found]


def _inverse(gram: Sequence[Column], places: int, penalty: float) -> list[Column] | None:
    """Of the normal equations, in which the effects of blocks and draws are random."""
    matrix = [list(line) for line in gram]
    for index in range(places, len(matrix)):
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
    found: list[Column] = []
    for effect in EFFECTS[: max(0, degrees // LEAST_DEGREES)]:
        values = [effect(trial.place or 0) for trial in trials]
        center = (
            0.0
            if found
            else fmean(value for value, is_known in zip(values, known, strict=True) if is_known)
        )
        found.append(
            [
                value - center if is_known else 0.0
                for value, is_known in zip(values, known, strict=True)
            ]
        )
    return found


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
