"""Finds the steady window of a run: where warm-up ends, and how the step times drift."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, exp

from traindyno.core.measurement.change_points import (
    LEAST_CHANGE,
    LEAST_REGIME_STEPS,
    Regime,
    find_regimes,
)
from traindyno.core.measurement.stalls import Stall, find_stalls, log_levels
from traindyno.figures.autocorrelation import Trend, estimate_trend
from traindyno.figures.beyond import Drift
from traindyno.figures.distributions import SIGNIFICANCE

EARLY_SHARE = 0.1
LEAST_STEADY_SHARE = 0.2
LEAST_STEADY_STEPS = LEAST_REGIME_STEPS
MOST_CHANGE = LEAST_CHANGE  # of a drift over the log


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyWindow:
    """The steps from ``first`` on, of ``count`` in all.

    ``regimes`` are those of the whole log, ``steady`` the index of the one in which the latest
    level begins. ``given`` is the warm-up that the suite sets.

    ``levels`` are logarithms of all step times without stalls; ``stalls`` are those of the window.
    ``trend`` is that within the regimes of the warm-up, each with its own level, and over the
    window; without the log's first tenth.
    """

    first: int
    count: int
    given: int | None
    regimes: tuple[Regime, ...]
    steady: int
    levels: tuple[float, ...]
    stalls: tuple[Stall, ...]
    trend: Trend | None

    @property
    def steps(self) -> int:
        return self.count - self.first

    @property
    def latest_steps(self) -> int:
        """Steps since the last level shift; too few means the level is not settled."""
        return self.count - max(self.first, self.regimes[self.steady].first if self.regimes else 0)

    @property
    def least_first(self) -> int:
        """What happens once before this step belongs to the warm-up: the first tenth does, unless
        the suite sets it.
        """
        return (
            self.first
            if self.given is not None
            else max(self.first, ceil(EARLY_SHARE * self.count))
        )

    @property
    def drift(self) -> Drift | None:
        if self.trend is None:
            return None
        steps = max(0, self.steps - 1)
        return Drift(
            change=self.trend.slope * steps, standard_error=self.trend.standard_error * steps
        )


def find_steady_window(
    step_seconds: Sequence[float], *, warmup_steps: int | None = None
) -> SteadyWindow:
    """The latest lasting regime of step times in order; ``warmup_steps`` given by the suite are
    used unchanged.

    Regimes are found by change points over the whole series. A level that returns has not ended:
    what came in between belongs to the run, and a slower stretch is a stall, of any length. A
    change near the end leaves too few steps to say whether it lasts: it ends no warm-up. The first
    step is never steady: caches, buffers and optimizer state are made in it. Stalls in the first
    tenth of the steps belong to the warm-up.
    """
    count = len(step_seconds)
    begin = min(count, 1 if warmup_steps is None else warmup_steps)
    levels = log_levels(step_seconds) if count else []
    regimes_after_start = find_regimes(levels[begin:]) if begin < count else ()
    regimes = tuple(
        replace(regime, first=regime.first + begin, end=regime.end + begin)
        for regime in regimes_after_start
    )
    steady = max(0, len(regimes) - 1)
    while (earlier := _first_that_returns(regimes, steady)) is not None:
        steady = earlier
    lasting = next(
        (index for index in range(steady, 0, -1) if is_long(count - regimes[index].first, count)), 0
    )
    # Levels since the last lasting change belong to the run: those that return are no drift, and a
    # late change is one. A change of level has no slope, and where a slope is cut it stays in both
    # parts.
    parts = [
        *regimes[:lasting],
        *(replace(regime, end=regimes[-1].end) for regime in regimes[lasting : lasting + 1]),
    ]
    early = int(EARLY_SHARE * count)
    trend = estimate_trend(
        [levels[max(part.first, early) : part.end] for part in parts if part.end > early]
    )
    slow = [
        regime for regime in regimes[steady:] if regime.level >= regimes[-1].level + LEAST_CHANGE
    ]
    usual = _without_slow_stretches(levels, slow, regimes[-1].level) if slow else levels
    stretches = _slow_stretches(slow, step_seconds, levels, usual)
    stalls = sorted([*find_stalls(step_seconds, levels), *stretches], key=lambda stall: stall.first)
    first = (
        begin
        if warmup_steps is not None or not regimes
        else _after_stalls(regimes[lasting].first, stalls, count)
    )
    return SteadyWindow(
        first=first,
        count=count,
        given=warmup_steps,
        regimes=regimes,
        steady=steady,
        levels=tuple(usual),
        stalls=tuple(stall for stall in stalls if stall.first >= first),
        trend=trend,
    )


def _first_that_returns(regimes: Sequence[Regime], end: int) -> int | None:
    """The first regime before ``end`` whose level also occurs from there on."""
    for index in range(end):
        if any(abs(regimes[index].level - later.level) < LEAST_CHANGE for later in regimes[end:]):
            return index
    return None


def is_long(steps: int, count: int) -> bool:
    return steps >= max(LEAST_STEADY_STEPS, LEAST_STEADY_SHARE * count)


def _without_slow_stretches(
    levels: Sequence[float], slow: Sequence[Regime], latest: float
) -> list[float]:
    """The steps of slower stretches are moved to the latest level and keep their noise."""
    usual = list(levels)
    for regime in slow:
        for index in range(regime.first, regime.end):
            usual[index] += latest - regime.level
    return usual


def _slow_stretches(
    slow: Sequence[Regime],
    step_seconds: Sequence[float],
    levels: Sequence[float],
    usual: Sequence[float],
) -> list[Stall]:
    """One stall for each stretch, however many of its steps are below the usual level by their
    noise. What steps take beyond the stretch's own level are stalls of their own.
    """
    stretches: list[Stall] = []
    for regime in slow:
        places = range(regime.first, regime.end)
        excess = sum(
            max(0.0, min(step_seconds[place], exp(levels[place])) - exp(usual[place]))
            for place in places
        )
        stall = Stall(first=regime.first, last=regime.end - 1, seconds=excess)
        if stretches and stretches[-1].last + 1 == stall.first:
            before = stretches.pop()
            stall = replace(stall, first=before.first, seconds=before.seconds + stall.seconds)
        stretches.append(stall)
    return stretches


def _after_stalls(first: int, stalls: Sequence[Stall], count: int) -> int:
    """Stalls in the first tenth of the steps belong to the warm-up, and short ones that continue
    it.
    """
    for stall in stalls:
        continues = (
            stall.first <= first <= stall.last + 1 and stall.last - stall.first < LEAST_REGIME_STEPS
        )
        if continues or (first <= stall.first and stall.last < EARLY_SHARE * count):
            first = stall.last + 1
    return first


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyState:
    """Steps [0, warmup_steps) are not steady.

    ``reason`` says why ``is_reached`` is false, else it is None.
    """

    warmup_steps: int
    is_reached: bool
    reason: str | None


def judge_steadiness(window: SteadyWindow, *, numbers: Sequence[int] | None) -> SteadyState:
    """Whether a window is steady.

    ``numbers`` are the numbers of the steps, where they are known.
    """
    reason = _why_not(window, numbers)
    return SteadyState(warmup_steps=window.first, is_reached=reason is None, reason=reason)


def _why_not(window: SteadyWindow, numbers: Sequence[int] | None) -> str | None:
    """Why the run is not steady, or None."""

    def number(index: int) -> int:
        return numbers[min(index, len(numbers) - 1)] if numbers else index

    count = window.count
    least = LEAST_STEADY_STEPS + 1
    if window.given is None and count < least:
        return f"too few steps to find the end of the warm-up: {count} of at least {least}"
    if window.given is not None and window.given >= count:
        return f"{count} steps ran and the suite's warm-up takes {window.given}"
    if window.given is not None and window.steady > 0:
        changed = number(window.regimes[window.steady].first)
        return f"step times change at step {changed}, after the warm-up that the suite sets"
    if not is_long(window.latest_steps, count):
        is_resumed = numbers is not None and number(0) > 1
        of_steps = (
            f" (steps {number(0)} to {numbers[-1]})" if is_resumed and numbers else f" of {count}"
        )
        return (
            f"step times still changed at step {number(count - window.latest_steps)}{of_steps};"
            f" {window.latest_steps} steps after it are too few"
        )
    trend = window.trend
    if trend is None or abs(trend.slope) * (count - 1) <= MOST_CHANGE or trend.p > SIGNIFICANCE:
        return None
    change = exp(trend.slope * (count - 1)) - 1
    return f"step times drift: by {change:+.1%} over {count} steps, changes of level left out"
