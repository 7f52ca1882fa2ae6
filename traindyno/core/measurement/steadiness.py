"""Decides whether a run is steady: it is long enough, and the level of its step times neither changes nor drifts."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

from traindyno.core.measurement.change_points import LEAST_CHANGE
from traindyno.core.measurement.steady_window import LEAST_STEADY_STEPS, SteadyWindow, is_long
from traindyno.core.statistics.many_comparisons import SIGNIFICANCE

MOST_CHANGE = LEAST_CHANGE  # of a drift over the log


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyState:
    """Steps [0, warmup_steps) are not steady. ``reason`` says why ``is_reached`` is false, else it is None."""

    warmup_steps: int
    is_reached: bool
    reason: str | None
    was_given: bool


def judge_steadiness(window: SteadyWindow, *, numbers: Sequence[int] | None, stride: int) -> SteadyState:
    """``numbers`` are those of the steps, where they are known. ``stride`` logged steps are one here."""
    reason = _why_not(window, numbers, stride)
    return SteadyState(
        warmup_steps=window.first, is_reached=reason is None, reason=reason, was_given=window.given is not None
    )


def _why_not(window: SteadyWindow, numbers: Sequence[int] | None, stride: int) -> str | None:
    """None if the run is steady."""

    def number(index: int) -> int:
        """The log keeps the number of the last of several merged steps."""
        return numbers[min(index, len(numbers) - 1)] - stride + 1 if numbers else index * stride

    count, least = window.count, LEAST_STEADY_STEPS + 1
    if window.given is None and count < least:
        return f"too few steps to find the end of the warm-up: {count * stride} of at least {least * stride}"
    if window.given is not None and window.given >= count:
        return f"{count * stride} steps ran and the suite's warm-up takes {window.given * stride}"
    if window.given is not None and window.steady > 0:
        changed = number(window.regimes[window.steady].first)
        return f"step times change at step {changed}, after the warm-up that the suite sets"
    if not is_long(window.latest_steps, count):
        is_resumed = numbers is not None and number(0) > 1
        of_steps = f" (steps {number(0)} to {numbers[-1]})" if is_resumed and numbers else f" of {count * stride}"
        return (
            f"step times still changed at step {number(count - window.latest_steps)}{of_steps};"
            f" {window.latest_steps * stride} steps after it are too few"
        )
    trend = window.trend
    if trend is None or abs(trend.slope) * (count - 1) <= MOST_CHANGE or trend.p > SIGNIFICANCE:
        return None
    change = exp(trend.slope * (count - 1)) - 1
    return f"step times drift: by {change:+.1%} over {count * stride} steps, changes of level left out"
