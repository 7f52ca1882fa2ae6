"""The inverse of a small matrix, for normal equations."""

from collections.abc import Sequence

LEAST_PIVOT = 1e-12


def invert(matrix: Sequence[Sequence[float]]) -> list[list[float]] | None:
    """Gauss-Jordan elimination with pivots; None for a singular matrix."""
    size = len(matrix)
    scale = max(abs(value) for line in matrix for value in line)
    lines = [[*line, *(float(row == column) for column in range(size))] for row, line in enumerate(matrix)]
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
                lines[row] = [a - factor * b for a, b in zip(lines[row], lines[column], strict=True)]
    return [line[size:] for line in lines]
