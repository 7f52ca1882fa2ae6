"""Student's t and the gamma distribution, and the significance of many comparisons."""

from collections.abc import Sequence
from functools import lru_cache
from math import erfc, exp, expm1, lgamma, log, log1p, pi, sqrt
from statistics import NormalDist

_MOST_TERMS = 500
_ENOUGH = 1e-15
_CLOSE = 1e-11
# From here on, the approximation by the normal distribution is closer than the difference of two
# large logarithms of gamma functions, and Newton's method would not settle.
_NEARLY_NORMAL = 1e5
# With this many degrees of freedom or more (also infinitely many), t is the normal distribution.
_NORMAL = 1e15
_HALVINGS = 100
SIGNIFICANCE = 0.05


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b), by its continued fraction (Abramowitz and
    Stegun 26.5.8).
    """
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _beta_fraction(a, b, x) / a
    return 1 - front * _beta_fraction(b, a, 1 - x) / b


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Lentz's evaluation; the even and odd coefficients come in pairs."""
    numerator = 1.0
    denominator = 1 / (1 - (a + b) * x / (a + 1))
    fraction = denominator
    for m in range(1, _MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for coefficient in (even, odd):
            denominator = 1 / (1 + coefficient * denominator)
            numerator = 1 + coefficient / numerator
            change = numerator * denominator
            fraction *= change
        if abs(change - 1) < _ENOUGH:
            return fraction
    raise ArithmeticError(f"the incomplete beta function did not converge at a={a}, b={b}, x={x}")


def two_sided_p(t: float, degrees_of_freedom: float) -> float:
    """The probability of a value at least as far from 0 as ``t``."""
    if degrees_of_freedom >= _NEARLY_NORMAL:
        degrees = min(degrees_of_freedom, _NORMAL)
        return erfc(_normal_scale(degrees) * sqrt(degrees * log1p(t * t / degrees) / 2))
    return incomplete_beta(
        degrees_of_freedom / 2, 0.5, degrees_of_freedom / (degrees_of_freedom + t * t)
    )


@lru_cache(maxsize=1024)
def t_quantile(probability: float, degrees_of_freedom: float) -> float:
    """The quantile of t at ``probability``, by Newton's method within a bracket."""
    if not 0 < probability < 1 or degrees_of_freedom <= 0:
        raise ValueError(
            f"got probability {probability} and {degrees_of_freedom} degrees of freedom, expected "
            "(0, 1) and above 0"
        )
    if probability == 0.5:
        return 0.0
    if probability < 0.5:
        return -t_quantile(1 - probability, degrees_of_freedom)
    if degrees_of_freedom >= _NEARLY_NORMAL:
        degrees = min(degrees_of_freedom, _NORMAL)
        z = -NormalDist().inv_cdf(1 - probability) / _normal_scale(degrees)
        return sqrt(degrees * expm1(z * z / degrees))
    tail = 2 * (1 - probability)
    low = 0.0
    high = 1.0
    while two_sided_p(high, degrees_of_freedom) > tail and high < 1e150:
        low = high
        high = high * 2
    guess = (low + high) / 2
    for _ in range(_MOST_TERMS):
        excess = two_sided_p(guess, degrees_of_freedom) - tail
        low, high = (guess, high) if excess > 0 else (low, guess)
        newton = guess + excess / 2 / t_density(guess, degrees_of_freedom)
        following = newton if low <= newton <= high else (low + high) / 2
        if abs(following - guess) <= _CLOSE * max(1.0, guess):
            return following
        guess = following
    raise ArithmeticError(
        f"no quantile found at probability {probability}, {degrees_of_freedom} degrees of freedom"
    )


def _normal_scale(degrees_of_freedom: float) -> float:
    """Wallace (1959): this times the root of n log(1 + t² / n), with n degrees of freedom, is
    nearly normal.
    """
    return (8 * degrees_of_freedom + 1) / (8 * degrees_of_freedom + 3)


def t_density(t: float, degrees_of_freedom: float) -> float:
    """The probability density at ``t``."""
    half = degrees_of_freedom / 2
    front = exp(lgamma(half + 0.5) - lgamma(half)) / sqrt(2 * pi * half)
    return front * exp(-(half + 0.5) * log1p(t * t / degrees_of_freedom))


def t_half_width(standard_error: float, degrees_of_freedom: float, confidence: float) -> float:
    return t_quantile(0.5 + confidence / 2, degrees_of_freedom) * standard_error


def incomplete_gamma(shape: float, x: float) -> float:
    """The regularised lower incomplete gamma function P(shape, x), by its series (Abramowitz and
    Stegun 6.5.29).
    """
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
    """The quantile of the gamma distribution of scale 1; 0 where it is smaller than a float can
    hold.
    """
    if shape <= 0:
        return 0.0
    low = 0.0
    high = shape + 10 * sqrt(shape) + 40
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if incomplete_gamma(shape, middle) < probability else (low, middle)
        )
    return low


def adjust_by_holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p values in the order given: below 0.05 for any of them errs in at most 5 % of
    suites (Holm 1979).
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted = [0.0] * len(p_values)
    floor = 0.0
    for position, index in enumerate(order):
        floor = max(floor, min(1.0, (len(p_values) - position) * p_values[index]))
        adjusted[index] = floor
    return adjusted
