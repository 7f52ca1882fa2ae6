"""All reasons for which a run is not steady, in the order in which they count."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

from traindyno.core.measurement.change_points import LEAST_CHANGE
from traindyno.core.measurement.stalls import STALL, Stall
from traindyno.core.measurement.steady_state import LEAST_STEADY_STEPS, SteadyState, SteadyWindow, is_long
from traindyno.core.statistics.many_comparisons import SIGNIFICANCE

MOST_CHANGE = LEAST_CHANGE  # of a drift over the log, and of the half width of the mean step time's interval
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """``undecided`` stalls take ``undecided_share`` of the window's time. ``half_width`` of the 95 % interval of the
    mean of steps and unlogged stalls, a share of it; None if unknown. ``target_half_width`` is what the suite's
    ``stop_when`` asks for.

    ``numbers`` are those of the steps, where they are known. ``stride`` logged steps are one here.
    """

    window: SteadyWindow
    undecided: Sequence[Stall]
    undecided_share: float
    half_width: float | None
    target_half_width: float | None
    numbers: Sequence[int] | None
    stride: int

    def step_number(self, index: int) -> int:
        """Of several steps that are one here, the log keeps the last one's number."""
        if not self.numbers:
            return index * self.stride
        return self.numbers[min(index, len(self.numbers) - 1)] - self.stride + 1

    @property
    def of_steps(self) -> str:
        """Of how many steps, or of which, if the run does not begin at the first one."""
        if self.numbers and self.step_number(0) > 1:
            return f" (steps {self.step_number(0)} to {self.numbers[-1]})"
        return f" of {self.window.count * self.stride}"


def judge_steadiness(observed: Observed) -> SteadyState:
    window = observed.window
    unsettled = _why_not_settled(observed)
    reason = unsettled or _why_undecided(observed) or _why_noisy(observed)
    return SteadyState(
        warmup_steps=window.first,
        is_reached=reason is None,
        reason=reason,
        was_given=window.given is not None,
        note=_note(observed) if reason is None else None,
        is_only_noisy=reason is not None and unsettled is None,
    )


def _why_not_settled(observed: Observed) -> str | None:
    return _why_too_few(observed) or _why_changing(observed) or _why_drifting(observed)


def _why_too_few(observed: Observed) -> str | None:
    window, stride = observed.window, observed.stride
    least = LEAST_STEADY_STEPS + 1
    if window.given is None and window.count < least:
        few = f"{window.count * stride} of at least {least * stride}"
        return f"too few steps to find the end of the warm-up: {few}"
    if window.given is not None and window.given >= window.count:
        return f"{window.count * stride} steps ran and the suite's warm-up takes {window.given * stride}"
    return None


def _why_changing(observed: Observed) -> str | None:
    window, stride = observed.window, observed.stride
    if window.given is not None and window.steady > 0:
        number = observed.step_number(window.regimes[window.steady].first)
        return f"step times change at step {number}, after the warm-up that the suite sets"
    if is_long(window.latest_steps, window.count):
        return None
    return (
        f"step times still changed at step {observed.step_number(window.count - window.latest_steps)}"
        f"{observed.of_steps}; {window.latest_steps * stride} steps after it are too few"
    )


def _why_drifting(observed: Observed) -> str | None:
    trend, count = observed.window.trend, observed.window.count
    if trend is None or abs(trend.slope) * (count - 1) <= MOST_CHANGE or trend.p > SIGNIFICANCE:
        return None
    change = exp(trend.slope * (count - 1)) - 1
    return f"step times drift: by {change:+.1%} over {count * observed.stride} steps, changes of level left out"


def _why_undecided(observed: Observed) -> str | None:
    if observed.undecided_share <= MOST_CHANGE / 2:
        return None
    stalls = sorted(observed.undecided, key=lambda stall: stall.first)
    places = [str(observed.step_number(stall.first)) for stall in stalls[:_MOST_NAMED]]
    places += ["…"] * (len(stalls) > _MOST_NAMED)
    name = "a stall" if stalls[0].name == STALL else stalls[0].name
    several = "stalls of different length" if all(stall.name == STALL for stall in stalls) else "stalls and phases"
    stalls_text = f"{name} at step" if len(stalls) == 1 else f"{several} at steps"
    verb = "takes" if len(stalls) == 1 else "take"
    return (
        f"{stalls_text} {', '.join(places)} {verb} {observed.undecided_share:.1%} of the time, "
        "and the run does not show whether that recurs"
    )


def _why_noisy(observed: Observed) -> str | None:
    most = max(MOST_CHANGE, observed.target_half_width or 0.0)
    if observed.half_width is None or observed.half_width <= most:
        return None
    return f"step times vary so much that their mean is only known within ±{observed.half_width:.1%}"


def _note(observed: Observed) -> str | None:
    """A note only if more than an early part of the run had another level."""
    change = observed.window.late_change
    if change is None:
        return None
    number = observed.step_number(observed.window.regimes[observed.window.steady].first)
    return f"step times changed by {change:+.1%} at step {number}; the rate is that of the latest regime, from there on"
