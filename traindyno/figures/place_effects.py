"""Effects of the place of a run in its job, and the algebra that fits them."""

from collections.abc import Callable, Sequence
from operator import mul

LEAST_PIVOT = 1e-12
# For each effect of the place that is removed; a pair with fewer of its own borrows one from all
# cells of its jobs.
LEAST_DEGREES = 3
Matrix = Sequence[Sequence[float]]
# A line, and being first.
EFFECTS: Sequence[Callable[[int], float]] = (float, lambda place: float(place == 1))


def invert(matrix: Matrix) -> list[list[float]] | None:
    """Gauss-Jordan elimination in place, with pivots; None for a singular matrix."""
    size = len(matrix)
    scale = max(abs(value) for line in matrix for value in line)
    lines = [list(line) for line in matrix]
    order = list(range(size))
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(lines[row][column]))
        divisor = lines[pivot][column]
        if abs(divisor) <= LEAST_PIVOT * scale:
            return None
        lines[column], lines[pivot] = lines[pivot], lines[column]
        order[column], order[pivot] = order[pivot], order[column]
        lines[column][column] = 1.0
        lines[column] = [value / divisor for value in lines[column]]
        for row in range(size):
            if row != column:
                factor = lines[row][column]
                lines[row][column] = 0.0
                lines[row] = [
                    a - factor * b for a, b in zip(lines[row], lines[column], strict=True)
                ]
    places = sorted(range(size), key=order.__getitem__)
    return [[line[place] for place in places] for line in lines]


def dot(one: Sequence[float], other: Sequence[float]) -> float:
    total: float = sum(map(mul, one, other))
    return total


def times(matrix: Matrix, vector: Sequence[float]) -> list[float]:
    return [dot(line, vector) for line in matrix]
