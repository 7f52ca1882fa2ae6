"""Claims over many pairs at once: Holm's correction and Bonferroni's, and how many trials would show a difference."""

from collections.abc import Sequence
from math import log

from traindyno.core.measurement.student_t import t_quantile

POWER = 0.8
SIGNIFICANCE = 0.05
MOST_TRIALS = 10_000


def adjust_by_holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p values in the order given: below 0.05 for any of them errs in at most 5 % of suites."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted = [0.0] * len(p_values)
    floor = 0.0
    for position, index in enumerate(order):
        floor = max(floor, min(1.0, (len(p_values) - position) * p_values[index]))
        adjusted[index] = floor
    return adjusted


def adjust_by_bonferroni(p_values: Sequence[float], comparisons: int) -> list[float]:
    """As if ``comparisons`` had been made of which only these are known: never below Holm's over all of them."""
    return [min(1.0, comparisons * p) for p in p_values]


def trials_to_detect(
    ratio: float, spread: float, *, power: float = POWER, significance: float = SIGNIFICANCE
) -> int | None:
    """Trials of each of two cells that would show ``ratio`` with ``power``; None if more than MOST_TRIALS.

    ``spread`` is the standard deviation of a trial's logarithm. The usual normal formula, with Student's quantiles
    in place of the normal ones: n >= 2 (spread / ln ratio)² (t(1 - significance/2) + t(power))², 2n - 2 degrees.
    """
    difference = abs(log(ratio))
    if spread == 0:
        return 2
    if difference == 0:
        return None
    low, high = 2, 2
    while not _is_enough(high, difference / spread, power, significance):
        low, high = high + 1, high * 2
        if low > MOST_TRIALS:
            return None
    while low < high:
        middle = (low + high) // 2
        low, high = (
            (low, middle) if _is_enough(middle, difference / spread, power, significance) else (middle + 1, high)
        )
    return low if low <= MOST_TRIALS else None


def _is_enough(trials: int, effect: float, power: float, significance: float) -> bool:
    degrees = 2 * trials - 2
    quantiles = t_quantile(1 - significance / 2, degrees) + t_quantile(power, degrees)
    return trials >= 2 * (quantiles / effect) ** 2
