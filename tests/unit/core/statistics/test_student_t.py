"""Student's t against printed tables and closed forms."""

from math import comb, inf, pi, sqrt
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import examples
from traindyno.core.statistics import student_t
from traindyno.core.statistics.student_t import (
    incomplete_beta,
    t_density,
    t_half_width,
    t_quantile,
    two_sided_p,
)


def share_below(t: float, degrees: float) -> float:
    tail = two_sided_p(t, degrees) / 2
    return 1 - tail if t > 0 else tail


@pytest.mark.parametrize(
    ("degrees", "probability", "published"),
    [  # any printed table of Student's t
        (1, 0.975, 12.706),
        (2, 0.975, 4.303),
        (3, 0.95, 2.353),
        (4, 0.975, 2.776),
        (5, 0.995, 4.032),
        (10, 0.975, 2.228),
        (30, 0.9, 1.310),
        (120, 0.975, 1.980),
    ],
)
def test_quantiles_are_those_of_the_published_table(degrees: int, probability: float, published: float) -> None:
    assert t_quantile(probability, degrees) == pytest.approx(published, abs=5e-4)


DEGREES, PROBABILITIES = st.floats(0.5, 500), st.floats(0.001, 0.999)


@examples(100)
@given(DEGREES, PROBABILITIES)
def test_quantile_and_distribution_are_inverse_and_symmetric(degrees: float, probability: float) -> None:
    quantile = t_quantile(probability, degrees)
    assert share_below(quantile, degrees) == pytest.approx(probability, abs=1e-12)
    assert t_quantile(1 - probability, degrees) == pytest.approx(-quantile, rel=1e-7, abs=1e-9)


@examples(100)
@given(DEGREES, PROBABILITIES, PROBABILITIES)
def test_quantiles_rise_with_the_probability(degrees: float, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert t_quantile(low, degrees) <= t_quantile(high, degrees)


def test_one_and_two_degrees_agree_with_their_closed_forms() -> None:
    # one degree of freedom is Cauchy: P(|t| > 1) = 1/2; two: P(t < x) = 1/2 + x / (2 sqrt(2 + x^2))
    assert two_sided_p(1.0, 1) == pytest.approx(0.5, abs=1e-14)
    assert share_below(3.0, 2) == pytest.approx(0.5 + 3 / (2 * sqrt(11)), abs=1e-14)


@examples(100)
@given(st.integers(1, 40), st.integers(1, 40), st.floats(0.001, 0.999))
def test_the_incomplete_beta_function_of_whole_numbers_is_a_sum_of_binomial_terms(a: int, b: int, x: float) -> None:
    trials = a + b - 1
    expected = sum(comb(trials, hits) * x**hits * (1 - x) ** (trials - hits) for hits in range(a, trials + 1))
    assert incomplete_beta(a, b, x) == pytest.approx(expected, rel=1e-12)
    assert incomplete_beta(a, b, x) + incomplete_beta(b, a, 1 - x) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(("x", "expected"), [(-0.5, 0.0), (0.0, 0.0), (1.0, 1.0), (1.5, 1.0)])
def test_the_incomplete_beta_function_ends_at_0_and_1(x: float, expected: float) -> None:
    assert incomplete_beta(2.0, 3.0, x) == expected


def test_the_incomplete_beta_function_converges_on_both_sides_of_its_mean() -> None:
    # t of so many degrees of freedom is normal: P(|z| > 1) = 0.3173105 and P(|z| > 0.001) = 0.9992021.
    assert two_sided_p(1.0, 2e6) == pytest.approx(0.3173105, abs=1e-6)
    assert two_sided_p(0.001, 2e6) == pytest.approx(0.9992021, abs=1e-6)
    # The distribution of equal parameters is symmetric about 1/2.
    below, above = incomplete_beta(400.0, 400.0, 0.48), incomplete_beta(400.0, 400.0, 0.52)
    assert below + above == pytest.approx(1.0, abs=1e-12)


def test_a_fraction_that_does_not_converge_is_an_error_with_its_arguments() -> None:
    with pytest.raises(ArithmeticError, match=r"did not converge at a=100000000\.0, b=100000000\.0, x=0\.5"):
        incomplete_beta(1e8, 1e8, 0.5)


def test_the_density_of_one_and_two_degrees_has_a_closed_form() -> None:
    # Cauchy: 1 / (pi (1 + t^2)); two degrees: (2 + t^2)^(-3/2)
    assert t_density(0.0, 1) == pytest.approx(1 / pi, rel=1e-14)
    assert t_density(2.0, 1) == pytest.approx(1 / (5 * pi), rel=1e-14)
    assert t_density(-2.0, 2) == pytest.approx(6**-1.5, rel=1e-14)


@pytest.mark.parametrize("degrees", [1, 2.5, 8, 300])
@pytest.mark.parametrize("probability", [0.6, 0.8, 0.975])
def test_a_quantile_takes_few_steps_of_newtons_method(
    monkeypatch: pytest.MonkeyPatch, degrees: float, probability: float
) -> None:
    """Bisection alone takes 40 of them, and every interval of a verdict needs a quantile."""
    evaluations = []

    def counted(t: float, degrees_of_freedom: float) -> float:
        evaluations.append(t)
        return two_sided_p(t, degrees_of_freedom)

    t_quantile.cache_clear()
    monkeypatch.setattr(student_t, "two_sided_p", counted)
    assert share_below(t_quantile(probability, degrees), degrees) == pytest.approx(probability, abs=1e-12)
    assert len(evaluations) <= 13


@pytest.mark.parametrize(("probability", "degrees"), [(0.0, 3), (1.0, 3), (-0.2, 3), (1.2, 3), (0.9, 0.0), (0.9, -1.0)])
def test_a_quantile_is_refused_outside_of_the_distribution(probability: float, degrees: float) -> None:
    with pytest.raises(ValueError, match=f"probability {probability} and {degrees} degrees of freedom"):
        t_quantile(probability, degrees)


@pytest.mark.parametrize("degrees", [9.9e4, 1e5, 1e6, 1e8, 1.00784198622e11, 1e15, inf])
@pytest.mark.parametrize("probability", [0.6, 0.9, 0.975, 0.9999])
def test_quantile_of_many_degrees_nears_the_normal_distribution(degrees: float, probability: float) -> None:
    z = NormalDist().inv_cdf(probability)
    # Abramowitz and Stegun 26.7.5, first and second term
    expected = z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
    assert t_quantile(probability, degrees) == pytest.approx(expected, rel=1e-9)
    assert two_sided_p(expected, degrees) == pytest.approx(2 * (1 - probability), rel=1e-7)
    assert two_sided_p(-expected, degrees) == two_sided_p(expected, degrees)


def test_quantiles_far_out_are_found() -> None:
    # Cauchy: the tail of t is 1 / (pi t)
    assert t_quantile(1 - 1e-9, 1) == pytest.approx(1e9 / pi, rel=1e-6)
    assert t_quantile(1e-9, 1) == pytest.approx(-1e9 / pi, rel=1e-6)
    # Fractions of a degree, as a shared variance may have, reach further still.
    assert two_sided_p(t_quantile(0.975, 0.05), 0.05) / 2 == pytest.approx(0.025, rel=1e-9)


def test_the_half_width_of_an_interval_is_the_quantile_times_the_error() -> None:
    # t(0.975, 4) = 2.776445, t(0.95, 4) = 2.131847
    assert t_half_width(2.0, 4, 0.95) == pytest.approx(2 * 2.776445, rel=1e-6)
    assert t_half_width(2.0, 4, 0.90) == pytest.approx(2 * 2.131847, rel=1e-6)
