"""Stalls that a run shows once, so that it can't be decided whether they recur."""

from collections.abc import Sequence
from dataclasses import dataclass

from traindyno.core.measurement.stalls import Stall
from traindyno.core.measurement.steady_state import SteadyWindow


@dataclass(frozen=True, slots=True, kw_only=True)
class UndecidedStalls:
    """They are in the run's rate as they were seen: ``share`` of the steady window's time.

    ``most_share`` is their share of a long run's time if they recur as soon as what was seen allows: after no more
    steps than the longest part of the window without them.
    """

    share: float
    most_share: float


def judge_single_stalls(
    single: Sequence[Stall], window: SteadyWindow, seconds_per_step: float
) -> UndecidedStalls | None:
    """``seconds_per_step`` includes them as they were seen; None if the steps took no time beside them."""
    if not single:
        return None
    seen = sum(stall.seconds for stall in single) / window.steps
    if seconds_per_step <= seen:
        return None
    most = sum(stall.seconds / _least_steps_between(stall, window) for stall in single)
    return UndecidedStalls(share=seen / seconds_per_step, most_share=most / (seconds_per_step - seen + most))


def _least_steps_between(stall: Stall, window: SteadyWindow) -> int:
    """From one such stall to the next: its own steps, and the longer part of the window without it."""
    before, after = stall.first - window.first, window.count - 1 - stall.last
    return max(before, after) + stall.last + 1 - stall.first
