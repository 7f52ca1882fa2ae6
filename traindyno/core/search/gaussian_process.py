"""A Gaussian process over the cells, with the standard library only (Rasmussen and Williams 2006, algorithm 2.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, prod, sqrt
from operator import getitem, mul
from statistics import fmean

from traindyno.core.search.kernel import Hyperparameters, Table, similarity_tables
from traindyno.core.search.space import Axis, Point

# Added to the diagonal as a share of the variance, so that the factorisation succeeds for cells that are alike.
JITTER = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The mean ``value`` of ``trials`` trials of the cell at ``point``."""

    point: Point
    value: float
    trials: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PointPosterior:
    """The covariances of a point with the observations, after the forward solution."""

    point: Point
    mean: float
    variance: float
    shared: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianProcess:
    """Conditioned on observations. ``factor`` is the lower Cholesky factor of their covariance, row by row.

    ``whitened`` are the centred values solved by it. ``log_likelihood`` is that of the observations.
    """

    tables: tuple[Table, ...]
    variance: float
    center: float
    points: tuple[Point, ...]
    factor: tuple[tuple[float, ...], ...]
    whitened: tuple[float, ...]
    log_likelihood: float

    def posterior(self, point: Point) -> PointPosterior:
        covariances = covariances_of(point, self.points, self.tables, self.variance)
        shared = forward_solve(self.factor, covariances)
        return PointPosterior(
            point=point,
            mean=self.center + sum(map(mul, shared, self.whitened)),
            variance=max(0.0, self.variance - sum(map(mul, shared, shared))),
            shared=tuple(shared),
        )

    def covariance(self, first: PointPosterior, second: PointPosterior) -> float:
        (prior,) = covariances_of(first.point, (second.point,), self.tables, self.variance)
        return prior - float(sum(map(mul, first.shared, second.shared)))

    def mean_of(self, values: Sequence[float], posteriors: Sequence[PointPosterior]) -> list[float]:
        """The means of another quantity that was measured at the same points and is as smooth."""
        center = fmean(values)
        whitened = forward_solve(self.factor, [value - center for value in values])
        return [center + sum(map(mul, each.shared, whitened)) for each in posteriors]


def condition(
    axes: Sequence[Axis], observations: Sequence[Observation], hyperparameters: Hyperparameters, *, center: float
) -> GaussianProcess:
    """``center`` is the prior mean."""
    variance, noise = exp(hyperparameters.variance), exp(hyperparameters.noise)
    tables = similarity_tables(axes, hyperparameters)
    points = tuple(each.point for each in observations)
    factor: list[list[float]] = []
    for index, each in enumerate(observations):
        row = covariances_of(each.point, points[:index], tables, variance)
        solved = forward_solve(factor, row)
        own = variance * (1 + JITTER) + noise / each.trials
        solved.append(sqrt(max(own - sum(map(mul, solved, solved)), variance * JITTER)))
        factor.append(solved)
    whitened = forward_solve(factor, [each.value - center for each in observations])
    return GaussianProcess(
        tables=tables,
        variance=variance,
        center=center,
        points=points,
        factor=tuple(map(tuple, factor)),
        whitened=tuple(whitened),
        log_likelihood=-sum(map(mul, whitened, whitened)) / 2 - sum(log(row[-1]) for row in factor),
    )


def covariances_of(point: Point, others: Sequence[Point], tables: Sequence[Table], variance: float) -> list[float]:
    rows = [table[level] for table, level in zip(tables, point, strict=True)]
    return [variance * prod(map(getitem, rows, other)) for other in others]


def forward_solve(factor: Sequence[Sequence[float]], values: Sequence[float]) -> list[float]:
    """The solution x of factor · x = values, for a lower triangular factor."""
    solved: list[float] = []
    for row, value in zip(factor, values, strict=True):
        solved.append((value - sum(map(mul, solved, row))) / row[-1])
    return solved
