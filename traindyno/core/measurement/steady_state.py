"""Where warm-up ends, and whether the step times after it are steady."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

from traindyno.core.measurement.change_points import LEAST_CHANGE, Regime, find_regimes
from traindyno.core.measurement.stalls import Stall, find_stalls, log_levels
from traindyno.core.statistics.autocorrelation import Trend, estimate_trend

LEAST_STEADY_STEPS = 5
LEAST_STEADY_SHARE = 0.2
DRIFT_LIMIT = 0.02
_DRIFT_P = 0.01
_EARLY_SHARE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyState:
    """Steps [0, warmup_steps) are not steady. ``reason`` says why ``is_reached`` is false, else it is None.

    ``note`` names the regime of the rate, if the step times changed after the begin of the run. ``stall_share`` is what
    stalls add to the time that may or may not recur, if they are the only reason.
    """

    warmup_steps: int
    is_reached: bool
    reason: str | None
    was_given: bool
    note: str | None = None
    stall_share: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyWindow:
    """The steady part of a run and its stalls.

    ``levels`` are logarithms of all step times without stalls; ``trend`` is theirs in the steady part, None below 20.
    """

    state: SteadyState
    levels: tuple[float, ...]
    stalls: tuple[Stall, ...]
    trend: Trend | None


def find_steady_window(
    step_seconds: Sequence[float], *, warmup_steps: int | None = None, stride: int = 1
) -> SteadyWindow:
    """The latest regime of step times in order; ``warmup_steps`` given by the suite are used unchanged.

    Regimes are found by change points over the whole series. A slower stretch after which the old level returns is a
    stall, of any length. The first step is never steady: caches, buffers and optimizer state are made in it.
    ``stride``: so many logged steps are one here; reasons and notes are in logged ones.
    """
    count = len(step_seconds)
    levels = log_levels(step_seconds) if count else []
    first, reason = _given_window(count, warmup_steps, stride)
    regimes = find_regimes(levels[first:]) if first < count else ()
    shifted = [Regime(first=each.first + first, end=each.end + first, level=each.level) for each in regimes]
    steady = _latest_level(shifted)
    levels = _without_slow_stretches(levels, shifted, steady)
    stalls = find_stalls(step_seconds, levels)
    if warmup_steps is None and shifted:
        first = _after_first_stall(shifted[steady].first, stalls)
    trend = estimate_trend(levels[first:])
    if reason is None and warmup_steps is not None and steady > 0:
        reason = f"step times change at step {shifted[steady].first * stride}, after the warm-up that the suite sets"
    if reason is None:
        reason = _why_not_steady(count, first, trend, stride)
    state = SteadyState(
        warmup_steps=first,
        is_reached=reason is None,
        reason=reason,
        was_given=warmup_steps is not None,
        note=_note(shifted, steady, count, stride) if reason is None else None,
    )
    within = tuple(stall for stall in stalls if stall.first >= first)
    return SteadyWindow(state=state, levels=tuple(levels), stalls=within, trend=trend)


def _given_window(count: int, warmup_steps: int | None, stride: int) -> tuple[int, str | None]:
    """The first step that may be steady, and why none is."""
    if warmup_steps is not None:
        short = f"{count * stride} steps ran and the suite's warm-up takes {warmup_steps * stride}"
        return min(warmup_steps, count), None if warmup_steps < count else short
    least = 1 + LEAST_STEADY_STEPS
    if count < least:
        few = f"too few steps to find the end of the warm-up: {count * stride} of at least {least * stride}"
        return min(1, count), few
    return 1, None


def _latest_level(regimes: Sequence[Regime]) -> int:
    """The first regime from which on the level is the latest one, slower stretches in between left out."""
    if not regimes:
        return 0
    latest, found = regimes[-1].level, len(regimes) - 1
    for index in reversed(range(found)):
        if regimes[index].level < latest - LEAST_CHANGE:
            break
        if abs(regimes[index].level - latest) < LEAST_CHANGE:
            found = index
    return found


def _without_slow_stretches(levels: list[float], regimes: Sequence[Regime], steady: int) -> list[float]:
    """The level of slower stretches between steps of the latest level is set to that level: they are stalls."""
    for regime in regimes[steady:]:
        if regime.level >= regimes[-1].level + LEAST_CHANGE:
            levels[regime.first : regime.end] = [regimes[-1].level] * (regime.end - regime.first)
    return levels


def _after_first_stall(first: int, stalls: Sequence[Stall]) -> int:
    """Stalls that continue the warm-up belong to it."""
    for stall in stalls:
        if stall.first <= first <= stall.last + 1:
            first = stall.last + 1
    return first


def _why_not_steady(count: int, first: int, trend: Trend | None, stride: int) -> str | None:
    left = count - first
    if left < max(LEAST_STEADY_STEPS, LEAST_STEADY_SHARE * count):
        return (
            f"step times still changed at step {first * stride} of {count * stride}; "
            f"{left * stride} steps after it are too few"
        )
    if trend is None or abs(trend.change) <= DRIFT_LIMIT or trend.p > _DRIFT_P:
        return None
    return f"step times drift: by {exp(trend.change) - 1:+.1%} over the latest {left * stride} steps"


def _note(regimes: Sequence[Regime], steady: int, count: int, stride: int) -> str | None:
    """A note only if more than an early part of the run had another level."""
    if not steady or regimes[steady].first <= _EARLY_SHARE * count:
        return None
    change = exp(regimes[-1].level - regimes[steady - 1].level) - 1
    first = regimes[steady].first * stride
    return f"step times changed by {change:+.1%} at step {first}; the rate is that of the latest regime, from there on"
