"""The most that any rule for two cells can find, if it errs in 5 % of suites whose trials resemble
the one before.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.simulations.noise_models import CORRELATION, CV

SEED = 20261121
SUITES = 20_000
ERROR = 0.05
# CVs of the correlated trials: a rule doesn't know it, so that the least power over them is a
# bound.
SPREADS = (0.02, 0.025, 0.03, 0.035, 0.04)

Matrix = NDArray[np.floating[Any]]


def most_power(
    lead: float,
    trials: int,
    *,
    correlation: float = CORRELATION,
    spreads: Sequence[float] = SPREADS,
) -> float:
    """The most power to find a lead (of logarithms) with independent trials of CV 2 %.

    It is that of the most powerful test (Neyman and Pearson 1933) of correlated trials of two equal
    cells against independent ones with the lead, in the differences from the mean of all trials. A
    rule that treats both cells alike may call each of them the better one in half of ``ERROR``.
    """
    source = np.random.default_rng(SEED)
    contrasts = _contrasts(2 * trials)
    shift = contrasts @ np.repeat([-lead / 2, lead / 2], trials)
    independent = contrasts @ contrasts.T * CV**2
    nulls = (
        contrasts @ _correlated(trials, spread, correlation) @ contrasts.T for spread in spreads
    )
    return min(_power(source, null, independent, shift) for null in nulls)


def _power(source: np.random.Generator, null: Matrix, alternative: Matrix, shift: Matrix) -> float:
    """The power, by simulating the logarithm of the likelihood ratio under both models."""
    under_null = source.multivariate_normal(np.zeros(len(shift)), null, SUITES)
    under_alternative = source.multivariate_normal(shift, alternative, SUITES)
    inverse_null = np.linalg.inv(null)
    inverse_alternative = np.linalg.inv(alternative)

    def ratio(values: Matrix) -> Matrix:
        centred = np.subtract(values, shift)
        return (_squares(values, inverse_null) - _squares(centred, inverse_alternative)) / 2

    critical = np.quantile(ratio(under_null), 1 - ERROR / 2)
    return float(np.mean(ratio(under_alternative) > critical))


def _squares(values: Matrix, inverse: Matrix) -> Matrix:
    return np.asarray(np.einsum("ij,jk,ik->i", values, inverse, values))


def _contrasts(count: int) -> Matrix:
    """All but one of the differences from the mean: the level of both cells together tells
    nothing.
    """
    return (np.eye(count) - 1 / count)[:-1]


def _correlated(trials: int, spread: float, correlation: float) -> Matrix:
    lags = np.abs(np.subtract.outer(np.arange(trials), np.arange(trials)))
    return np.kron(np.eye(2), spread**2 * correlation**lags)
