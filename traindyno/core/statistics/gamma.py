"""Quantiles of the gamma distribution, with the standard library only."""

from functools import lru_cache
from math import exp, lgamma, log, sqrt

_ENOUGH = 1e-15
_HALVINGS = 100


def incomplete_gamma(shape: float, x: float) -> float:
    """The regularised lower incomplete gamma function P(shape, x), by its series (Abramowitz and Stegun 6.5.29)."""
    if x <= 0:
        return 0.0
    term = total = 1.0
    step = shape
    while term > _ENOUGH * total:
        step += 1
        term *= x / step
        total += term
    return min(1.0, exp(shape * log(x) - x - lgamma(shape + 1)) * total)


@lru_cache(maxsize=1024)
def gamma_quantile(probability: float, shape: float) -> float:
    """The quantile of the gamma distribution of scale 1; 0 where it is smaller than a float can hold."""
    if shape <= 0:
        return 0.0
    low, high = 0.0, shape + 10 * sqrt(shape) + 40
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if incomplete_gamma(shape, middle) < probability else (low, middle)
    return low
