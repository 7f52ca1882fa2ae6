"""Ten realistic hours: the figure and its 90 % interval, each held to its limit plus two standard
errors.
"""

from math import sqrt

import pytest

from tests.simulations.repetitions import repetitions
from tests.simulations.ten_hours import predict_ten_hours


@pytest.mark.parametrize("purchase", ["on-demand", "spot"])
@pytest.mark.parametrize("trials", [3, 5])
def test_ten_realistic_hours_are_predicted(trials: int, purchase: str) -> None:
    sources = list(repetitions(60, f"ten hours {purchase} {trials}"))
    found = predict_ten_hours(iter(sources), trials=trials, purchase=purchase)
    error = 2 * sqrt(0.1 * 0.9 / len(sources))
    assert found.median_error <= 0.025
    assert 0.85 - error <= found.covered <= 0.95 + error
    assert found.not_given <= 0.05
