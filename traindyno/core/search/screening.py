"""The cells of the first round: spread over the axes, so that each gives the most information about the others."""

from operator import mul

from traindyno.core.search.gaussian_process import covariances_of
from traindyno.core.search.kernel import Hyperparameters, similarity_tables
from traindyno.core.search.space import Space

FEWEST = 4
# The prior: equal weights of all axes, little interaction, and noise of a tenth of the values' deviation.
LOG_WEIGHT, LOG_LENGTH, NOISE = 0.0, 0.0, 0.01
MOST_REFERENCES = 128


def screening_size(space: Space) -> int:
    """The degrees of freedom of the mean and the main effects, and a third more for interactions."""
    needed = 1 + sum(axis.degrees_of_freedom for axis in space.axes)
    return min(len(space.points), max(FEWEST, needed + needed // 3))


def spread_points(space: Space, count: int, first: int) -> list[int]:
    """Indices of points: ``first``, then in turn the one that most reduces the variance of all (Cohn 1996)."""
    points = space.points
    tables = similarity_tables(
        space.axes,
        Hyperparameters(
            variance=0.0,
            noise=0.0,
            weights=(LOG_WEIGHT,) * len(space.axes),
            lengths=(LOG_LENGTH,) * len(space.axes),
        ),
    )
    references = points[:: -(-len(points) // MOST_REFERENCES)]
    # The covariance of each point with each reference, given the chosen points; and each point's variance.
    shared = [covariances_of(point, references, tables, 1.0) for point in points]
    own = [1.0] * len(points)
    chosen: list[int] = []
    solved: list[list[float]] = [[] for _ in points]
    following = first
    while True:
        chosen.append(following)
        if len(chosen) >= count:
            return chosen
        pivot = (own[following] + NOISE) ** 0.5
        latest = solved[following]
        towards = covariances_of(points[following], points, tables, 1.0)
        row = [value / pivot for value in shared[following]]
        for index, prior in enumerate(towards):
            part = (prior - sum(map(mul, solved[index], latest))) / pivot
            if index == following:
                continue
            solved[index].append(part)
            own[index] -= part * part
            shared[index] = [value - part * other for value, other in zip(shared[index], row, strict=True)]
        following = max(
            (index for index in range(len(points)) if index not in chosen),
            key=lambda index: sum(map(mul, shared[index], shared[index])) / (own[index] + NOISE),
        )
