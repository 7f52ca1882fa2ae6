"""Fits against numpy's linear algebra, and the choice of terms against a search through all of them."""

import random
from itertools import combinations
from math import inf, log, sqrt

import numpy as np
import pytest

from traindyno.core.statistics.least_squares import fit_not_negative

PLACES = (1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 20.0)
ROWS = [(1.0, 1 / place, place, place * place) for place in PLACES]


def noisy(*coefficients: float, spread: float, seed: int) -> list[float]:
    source = random.Random(seed)
    return [
        sum(value * coefficient for value, coefficient in zip(row, coefficients, strict=True)) + source.gauss(0, spread)
        for row in ROWS
    ]


def criterion(values: list[float], used: tuple[int, ...]) -> float:
    """The Bayesian information criterion of one choice of terms; infinite where a coefficient is not positive."""
    design = np.array(ROWS)[:, used]
    coefficients, *_ = np.linalg.lstsq(design, np.array(values), rcond=None)
    if min(coefficients) <= 0:
        return inf
    residuals = np.array(values) - design @ coefficients
    share = residuals @ residuals / (np.array(values) @ np.array(values))
    return len(values) * log(share + 1e-8) + len(used) * log(len(values))


@pytest.mark.parametrize(
    "values",
    [
        noisy(3.0, 40.0, 0.0, 0.0, spread=0.2, seed=1),
        noisy(0.0, 0.0, 2.0, 0.1, spread=0.5, seed=2),
        noisy(5.0, 10.0, 1.0, 0.02, spread=0.1, seed=3),
        noisy(5.0, -10.0, 1.0, 0.0, spread=0.1, seed=4),
        noisy(8.0, 0.0, 0.0, 0.0, spread=1.0, seed=5),
    ],
)
def test_terms_have_the_least_criterion_and_their_fit_is_least_squares(values: list[float]) -> None:
    fit = fit_not_negative(ROWS, values)
    choices = [used for size in range(1, 5) for used in combinations(range(4), size)]
    assert fit is not None
    assert fit.used == min(choices, key=lambda used: criterion(values, used))
    design = np.array(ROWS)[:, fit.used]
    coefficients, *_ = np.linalg.lstsq(design, np.array(values), rcond=None)
    assert [fit.coefficients[term] for term in fit.used] == pytest.approx(list(coefficients))
    assert sum(value != 0 for value in fit.coefficients) == len(fit.used)
    residuals = np.array(values) - design @ coefficients
    assert fit.degrees_of_freedom == len(values) - len(fit.used) - 1
    assert fit.residual == pytest.approx(sqrt(residuals @ residuals / fit.degrees_of_freedom))
    inverse = np.linalg.inv(design.T @ design)
    assert np.array(fit.inverse) == pytest.approx(inverse)
    row = np.array((1.0, 1 / 6, 6.0, 36.0))
    assert fit.at(tuple(row)) == pytest.approx(row[list(fit.used)] @ coefficients)
    assert fit.leverage(tuple(row)) == pytest.approx(row[list(fit.used)] @ inverse @ row[list(fit.used)])


def test_one_degree_of_freedom_is_assumed_where_none_is_left() -> None:
    fit = fit_not_negative([(1.0,), (1.0,)], [2.0, 4.0])
    assert fit is not None
    # a mean of 3, residuals of 1 and 1
    assert (fit.coefficients, fit.degrees_of_freedom) == ((3.0,), 1)
    assert fit.residual == pytest.approx(sqrt(2))


def test_two_values_bear_one_term_and_three_bear_two() -> None:
    line = [(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]
    two, three = fit_not_negative(line[:2], [3.0, 5.0]), fit_not_negative(line, [3.0, 5.0, 7.0])
    assert two is not None
    assert three is not None
    assert len(two.used) == 1
    assert three.coefficients == pytest.approx((1.0, 2.0))


def test_terms_that_can_not_be_told_apart_are_not_fitted_together() -> None:
    fit = fit_not_negative([(1.0, 2.0, 1.0), (1.0, 2.0, 2.0), (1.0, 2.0, 3.0), (1.0, 2.0, 4.0)], [3.1, 5.0, 6.9, 9.0])
    assert fit is not None
    assert fit.used in {(0, 2), (1, 2)}


def test_without_values_or_with_one_there_is_no_fit() -> None:
    assert fit_not_negative([], []) is None
    assert fit_not_negative([(1.0,)], [2.0]) is None
    # a coefficient of nought or below is none
    assert fit_not_negative([(1.0,), (1.0,)], [-2.0, -3.0]) is None


def test_pivots_find_the_inverse_of_terms_of_any_order_and_scale() -> None:
    rows = [(0.0, 0.1), (100.0, 0.1), (200.0, 0.3), (100.0, 0.4)]
    fit = fit_not_negative(rows, [2.0, 3.0, 8.0, 9.0])
    assert fit is not None
    assert fit.coefficients == pytest.approx((0.01, 20.0))
