"""Where warm-up ends: the change point in a run's step times, found by marginal standard error (MSER).

White's MSER rule cuts the first d steps where (variance of the rest) / (number of the rest) is least. It is applied
to the logarithm of the step times, clipped at six robust deviations around the median of the second half and smoothed
by a running median of three, so that lone stalls can't pass for a change of regime. At most half of the steps is cut;
if the rest still drifts, there is no steady state.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import fmean, median, variance

LEAST_STEADY_STEPS = 5
_CLIP_DEVIATIONS = 6.0
_LEAST_DEVIATION = 1e-4  # of a logarithm: a hundredth of a per cent, below any timer's noise
_DEVIATIONS_PER_MAD = 1.4826
_DRIFT_LIMIT = 0.05
_DRIFT_DEVIATIONS = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyState:
    """Steps [0, warmup_steps) are not steady. ``reason`` says why ``is_reached`` is false, else it is None."""

    warmup_steps: int
    is_reached: bool
    reason: str | None
    was_given: bool


def find_steady_state(step_seconds: Sequence[float], *, warmup_steps: int | None = None) -> SteadyState:
    """The steady part of step times in order; ``warmup_steps`` given by the suite is taken as it is."""
    count = len(step_seconds)
    if warmup_steps is not None:
        left = count - warmup_steps
        reason = None if left > 0 else f"{count} steps ran and the suite's warm-up takes {warmup_steps}"
        return SteadyState(warmup_steps=min(warmup_steps, count), is_reached=left > 0, reason=reason, was_given=True)
    if count < 1 + LEAST_STEADY_STEPS:
        reason = f"too few steps to see warm-up end: {count} of at least {1 + LEAST_STEADY_STEPS}"
        return SteadyState(warmup_steps=min(1, count), is_reached=False, reason=reason, was_given=False)
    levels = _levels(step_seconds)
    cut = _least_standard_error_cut(levels)
    reason = _why_not_steady(levels, cut)
    return SteadyState(warmup_steps=cut, is_reached=reason is None, reason=reason, was_given=False)


def _levels(step_seconds: Sequence[float]) -> list[float]:
    logs = [log(max(seconds, 1e-9)) for seconds in step_seconds]
    tail = logs[len(logs) // 2 :]
    center = median(tail)
    deviation = _DEVIATIONS_PER_MAD * median(abs(value - center) for value in tail)
    reach = _CLIP_DEVIATIONS * max(deviation, _LEAST_DEVIATION)
    clipped = [min(max(value, center - reach), center + reach) for value in logs]
    smooth = [median(clipped[index - 1 : index + 2]) for index in range(1, len(clipped) - 1)]
    return [clipped[0], *smooth, clipped[-1]]


def _least_standard_error_cut(levels: Sequence[float]) -> int:
    """The earliest cut in the first half whose MSER statistic can't be told from the least one.

    The first step is always cut: caches, buffers and optimizer state are made in it.
    """
    center = levels[-1]  # shifts the sums near zero, so that the difference of squares keeps its digits
    total = total_of_squares = 0.0
    statistics = {}
    for cut in range(len(levels) - 1, 0, -1):
        shifted = levels[cut] - center
        total += shifted
        total_of_squares += shifted * shifted
        left = len(levels) - cut
        if left >= max(LEAST_STEADY_STEPS, len(levels) // 2):
            statistics[cut] = max(0.0, total_of_squares - total * total / left) / left**2
    # A variance from m values has a relative standard error of sqrt(2/m); within two of them, keep the longer window.
    tolerance = 1 + 2 * (2 / len(levels)) ** 0.5
    limit = min(statistics.values()) * tolerance + 1e-18
    return min(cut for cut, statistic in statistics.items() if statistic <= limit)


def _why_not_steady(levels: Sequence[float], cut: int) -> str | None:
    """A change beyond the middle can't be cut away; it shows as a drift within the window that is left."""
    steady = levels[cut:]
    early, late = steady[: len(steady) // 2], steady[len(steady) // 2 :]
    drift = fmean(late) - fmean(early)
    if abs(drift) <= _DRIFT_LIMIT or min(len(early), len(late)) < LEAST_STEADY_STEPS:
        return None
    noise = (variance(early) / len(early) + variance(late) / len(late)) ** 0.5
    if abs(drift) <= _DRIFT_DEVIATIONS * noise:
        return None
    return f"step times drift: the second half of the window is {exp(drift) - 1:+.1%} from the first"
