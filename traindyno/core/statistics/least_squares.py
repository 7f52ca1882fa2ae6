"""Least squares with coefficients that may not be negative, for a few terms."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log, sqrt

# A fit with a smaller relative error counts as exact, and no further terms are added.
EXACT = 1e-4
LEAST_PIVOT = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """``coefficients`` by term; 0 for a term that is left out.

    ``degrees_of_freedom``: observations less the terms used and one for their choice, but at least 1. ``residual`` is
    the root of the residuals' squares by these degrees. ``inverse`` is that of the normal equations of ``used``.
    """

    coefficients: tuple[float, ...]
    used: tuple[int, ...]
    degrees_of_freedom: int
    residual: float
    inverse: tuple[tuple[float, ...], ...]

    def at(self, row: Sequence[float]) -> float:
        return sum(value * coefficient for value, coefficient in zip(row, self.coefficients, strict=True))

    def leverage(self, row: Sequence[float]) -> float:
        """The variance of the fitted value at ``row``, in units of one observation's."""
        part = [row[term] for term in self.used]
        return _dot(part, [_dot(line, part) for line in self.inverse])


def fit_not_negative(rows: Sequence[Sequence[float]], values: Sequence[float]) -> Fit | None:
    """The subset of terms with the least Bayesian information criterion whose coefficients are all positive.

    At least one degree of freedom is left for the residuals; None with fewer than two values.
    """
    best: tuple[float, Fit] | None = None
    for size in range(1, min(len(values) - 1, len(rows[0]) if rows else 0) + 1):
        for used in combinations(range(len(rows[0])), size):
            found = _fit(rows, values, used)
            if found is None:
                continue
            scale = sum(value * value for value in values) / len(values)
            share = found.residual**2 * found.degrees_of_freedom / len(values) / scale
            criterion = len(values) * log(share + EXACT**2) + size * log(len(values))
            if best is None or criterion < best[0]:
                best = criterion, found
    return best[1] if best else None


def _fit(rows: Sequence[Sequence[float]], values: Sequence[float], used: tuple[int, ...]) -> Fit | None:
    columns = [[row[term] for row in rows] for term in used]
    normal = [[_dot(one, other) for other in columns] for one in columns]
    inverse = invert(normal)
    if inverse is None:
        return None
    right = [_dot(column, values) for column in columns]
    solved = [_dot(line, right) for line in inverse]
    if min(solved) <= 0:
        return None
    coefficients = [0.0] * len(rows[0])
    for term, value in zip(used, solved, strict=True):
        coefficients[term] = value
    freedom = max(1, len(values) - len(used) - 1)
    residuals = [value - _dot(row, coefficients) for row, value in zip(rows, values, strict=True)]
    return Fit(
        coefficients=tuple(coefficients),
        used=used,
        degrees_of_freedom=freedom,
        residual=sqrt(_dot(residuals, residuals) / freedom),
        inverse=tuple(map(tuple, inverse)),
    )


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


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
