"""Effects of the place of a run in its job, and the algebra that fits them."""

from collections.abc import Callable, Sequence

LEAST_PIVOT = 1e-12
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


def dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def times(matrix: Matrix, vector: Sequence[float]) -> list[float]:
    return [dot(line, vector) for line in matrix]
