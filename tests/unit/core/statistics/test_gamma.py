"""Quantiles of the gamma distribution, against values of tables."""

from math import exp

import pytest

from traindyno.core.statistics.gamma import gamma_quantile, incomplete_gamma


@pytest.mark.parametrize(
    ("shape", "probability", "expected"),
    # halves of chi-squared quantiles: 3.841 and 5.024 (1 degree), 5.991 (2), 18.307 (10), 124.342 (100)
    [(0.5, 0.95, 3.841459 / 2), (0.5, 0.975, 5.023886 / 2), (1, 0.95, 5.991465 / 2), (5, 0.95, 18.307038 / 2),
     (50, 0.95, 124.342113 / 2)],
)  # fmt: skip
def test_quantiles_are_those_of_chi_squared(shape: float, probability: float, expected: float) -> None:
    assert gamma_quantile(probability, shape) == pytest.approx(expected, rel=1e-6)


def test_a_shape_of_one_is_exponential_and_a_tiny_shape_is_almost_always_nothing() -> None:
    assert incomplete_gamma(1.0, 0.7) == pytest.approx(1 - exp(-0.7))
    assert incomplete_gamma(1.0, 0.0) == 0
    assert gamma_quantile(0.975, 1.6e-4) < 1e-9
