"""Student's t at its ends; test_oracles.py compares it with scipy."""

from math import pi

import pytest

from traindyno.figures import distributions
from traindyno.figures.distributions import incomplete_beta, t_quantile, two_sided_p


@pytest.mark.parametrize(("x", "expected"), [(-0.5, 0.0), (0.0, 0.0), (1.0, 1.0), (1.5, 1.0)])
def test_the_incomplete_beta_function_ends_at_0_and_1(x: float, expected: float) -> None:
    assert incomplete_beta(2.0, 3.0, x) == expected


def test_a_fraction_without_convergence_is_an_error_with_its_arguments() -> None:
    with pytest.raises(
        ArithmeticError, match=r"did not converge at a=100000000\.0, b=100000000\.0, x=0\.5"
    ):
        incomplete_beta(1e8, 1e8, 0.5)


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
    monkeypatch.setattr(distributions, "two_sided_p", counted)
    assert 1 - two_sided_p(t_quantile(probability, degrees), degrees) / 2 == pytest.approx(
        probability, abs=1e-12
    )
    assert len(evaluations) <= 13


@pytest.mark.parametrize(
    ("probability", "degrees"), [(0.0, 3), (1.0, 3), (-0.2, 3), (1.2, 3), (0.9, 0.0), (0.9, -1.0)]
)
def test_a_quantile_is_refused_outside_of_the_distribution(
    probability: float, degrees: float
) -> None:
    with pytest.raises(
        ValueError, match=f"probability {probability} and {degrees} degrees of freedom"
    ):
        t_quantile(probability, degrees)


def test_quantiles_far_out_are_found() -> None:
    # Cauchy: the tail of t is 1 / (pi t)
    assert t_quantile(1 - 1e-9, 1) == pytest.approx(1e9 / pi, rel=1e-6)
    assert t_quantile(1e-9, 1) == pytest.approx(-1e9 / pi, rel=1e-6)
    # Fractions of a degree, as a shared variance may have, reach further still.
    assert two_sided_p(t_quantile(0.975, 0.05), 0.05) / 2 == pytest.approx(0.025, rel=1e-9)
