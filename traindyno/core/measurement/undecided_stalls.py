"""Stalls that a run shows once, so that it can't be decided whether they recur."""

from collections.abc import Sequence
from dataclasses import dataclass

from traindyno.core.measurement.stalls import Stall
from traindyno.core.measurement.steady_window import SteadyWindow


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleStall:
    """``seconds`` are its length; ``share`` is its part of the steady window's time, in which it was seen once.

    ``share_again`` is what it takes of the same time if it recurs as soon as what was seen allows: after no more steps
    than the longest part of the window without it. ``step`` is the index of its first step.
    """

    seconds: float
    share: float
    share_again: float
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UndecidedStalls:
    """They are in the run's rate as they were seen."""

    single: tuple[SingleStall, ...]

    @property
    def share(self) -> float:
        """Share of the steady window's time."""
        return sum(stall.share for stall in self.single)


def judge_single_stalls(
    single: Sequence[Stall], window: SteadyWindow, seconds_per_step: float
) -> UndecidedStalls | None:
    """``seconds_per_step`` includes them as they were seen; None if the steps took no time beside them."""
    if not single or seconds_per_step <= sum(stall.seconds for stall in single) / window.steps:
        return None
    return UndecidedStalls(
        single=tuple(
            SingleStall(
                seconds=stall.seconds,
                share=stall.seconds / window.steps / seconds_per_step,
                share_again=stall.seconds / _least_steps_between(stall, window) / seconds_per_step,
                step=stall.first,
            )
            for stall in single
        )
    )


def _least_steps_between(stall: Stall, window: SteadyWindow) -> int:
    """From one such stall to the next: its own steps, and the longer part of the window without it."""
    before, after = stall.first - window.first, window.count - 1 - stall.last
    return max(before, after) + stall.last + 1 - stall.first
