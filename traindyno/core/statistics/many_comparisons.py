"""Many comparisons together: Holm's correction."""

from collections.abc import Sequence

SIGNIFICANCE = 0.05


def adjust_by_holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p values in the order given: below 0.05 for any of them errs in at most 5 % of suites (Holm 1979)."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted = [0.0] * len(p_values)
    floor = 0.0
    for position, index in enumerate(order):
        floor = max(floor, min(1.0, (len(p_values) - position) * p_values[index]))
        adjusted[index] = floor
    return adjusted
