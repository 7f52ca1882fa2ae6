"""Two cells whose trials resemble the one before: no rule errs in 5 % of suites and finds a lead of
5 % in 80 %.
"""

from math import log, sqrt
from statistics import NormalDist

import pytest

from tests.simulations.correlation_bound import most_power

LEAD = log(1.05)


@pytest.mark.parametrize(("trials", "bound"), [(4, 0.37), (6, 0.63), (8, 0.83)])
def test_no_rule_finds_more_than_docs_method_md_says(trials: int, bound: float) -> None:
    assert most_power(LEAD, trials) == pytest.approx(bound, abs=0.015)


def test_without_correlation_the_bound_is_the_power_of_the_z_test() -> None:
    # two means of 4 trials at a CV of 2 %: 0.0488 / (0.02 x sqrt(2 / 4)) = 3.45 errors apart, 1.96
    # are needed
    expected = NormalDist().cdf(LEAD / (0.02 * sqrt(2 / 4)) - NormalDist().inv_cdf(0.975))
    assert most_power(LEAD, 4, correlation=0.0, spreads=(0.02,)) == pytest.approx(
        expected, abs=0.01
    )
