"""The long-run time of a step: all steps after the warm-up, with what recurs at its rate."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, sqrt
from statistics import fmean

from traindyno.core.measurement.stalls import (
    STALL,
    OneTimeEvent,
    RecurringEvent,
    Stall,
    classify_phases,
    classify_stalls,
    recur_at_random,
)
from traindyno.core.measurement.steady_window import (
    SteadyState,
    SteadyWindow,
    find_steady_window,
    judge_steadiness,
)
from traindyno.figures.autocorrelation import estimate_mean
from traindyno.figures.beyond import Drift
from traindyno.figures.distributions import t_half_width
from traindyno.figures.estimates import CONFIDENCE
from traindyno.figures.log_means import total_variance


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleStall:
    """A stall that was seen once in the steady window.

    ``seconds`` are its length; ``share`` is its part of the window's time. ``share_again`` is what
    it takes of the same time if it recurs as soon as what was seen allows: after no more steps than
    the longest part of the window without it. ``step`` is the index of its first step. ``name`` is
    that of the logged phase, or "stall".
    """

    seconds: float
    share: float
    share_again: float
    step: int
    name: str = STALL


def judge_single_stalls(
    single: Sequence[Stall], window: SteadyWindow, seconds_per_step: float
) -> tuple[SingleStall, ...]:
    """Judge stalls that were seen once.

    ``seconds_per_step`` includes them as they were seen; none are judged if the steps took no time
    beside them.
    """
    if seconds_per_step <= sum(stall.seconds for stall in single) / max(1, window.steps):
        return ()
    judged = []
    for stall in single:
        # from one such stall to the next: its own steps, and the longer part of the window without
        # it
        longer = max(stall.first - window.first, window.count - 1 - stall.last)
        least_between = longer + stall.last + 1 - stall.first
        judged.append(
            SingleStall(
                seconds=stall.seconds,
                share=stall.seconds / window.steps / seconds_per_step,
                share_again=stall.seconds / least_between / seconds_per_step,
                step=stall.first,
                name=stall.name,
            )
        )
    return tuple(judged)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """Time of a step.

    ``seconds`` is the mean time of a step in the long run; ``core_seconds`` is its part without
    recurring events. ``one_time`` holds the logged phases of the whole log that are excluded from
    both; ``one_time_seconds`` is the sum of the phases within the steady window. ``variance`` is
    the variance of ``seconds``; it and ``drift`` are None below 20 steps. ``drift_p`` is two-sided,
    of no drift. ``undecided_stalls`` are in the run's rate as they were seen.
    """

    steady_state: SteadyState
    drift: Drift | None
    drift_p: float
    core_seconds: float
    recurring: tuple[RecurringEvent, ...]
    one_time: tuple[OneTimeEvent, ...]
    one_time_seconds: float
    variance: float | None
    degrees_of_freedom: float
    undecided_stalls: tuple[SingleStall, ...]

    @property
    def recurring_seconds(self) -> float:
        """Mean seconds of the recurring events in a step."""
        return sum(event.seconds_per_step for event in self.recurring)

    @property
    def seconds(self) -> float:
        return self.core_seconds + self.recurring_seconds

    @property
    def relative_error(self) -> float | None:
        """The standard error of ``seconds`` as a share of it."""
        return (
            None
            if self.variance is None or self.seconds <= 0
            else sqrt(self.variance) / self.seconds
        )

    def relative_half_width(self, *, confidence: float = CONFIDENCE) -> float | None:
        """Half width of the interval of ``seconds`` by Student's t, as a share of it; None below 20
        steps.
        """
        error = self.relative_error
        return None if error is None else t_half_width(error, self.degrees_of_freedom, confidence)


def measure_step_time(
    step_seconds: Sequence[float],
    *,
    phases: Mapping[int, Mapping[str, float]] | None = None,
    names_after_steps: Iterable[str] = (),
    warmup_steps: int | None = None,
    numbers: Sequence[int] | None = None,
) -> StepTime:
    """Measure the time of a step.

    The texts of the steady state name steps by their ``numbers``, or else by their index.

    Args:
        step_seconds: Seconds of each step, without the phases.
        phases: Seconds of phases by index of the step and by name.
        names_after_steps: Phases that are logged after a step.
        warmup_steps: Steps to leave out; None to find the steady window.
    """
    window = find_steady_window(step_seconds, warmup_steps=warmup_steps)
    logged = classify_phases(
        phases or {},
        count=len(step_seconds),
        first=window.least_first,
        names_after_steps=names_after_steps,
    )
    stalls = classify_stalls(window.stalls, count=window.steps, first=window.first)
    single = (*stalls.single, *logged.single)
    once = (recur_at_random([stall.seconds], window.steps, stall.name) for stall in single)
    recurring = (*logged.recurring, *stalls.recurring, *once)
    # a step that stalls has the level of the steps around it instead
    core = list(step_seconds)
    for stall in window.stalls:
        for index in range(stall.first, stall.last + 1):
            core[index] = min(core[index], exp(window.levels[index]))
    core = core[window.first :]
    core_seconds = fmean(core) if core else 0.0
    mean = estimate_mean(core)
    parts = [(event.variance_per_step, max(1.0, event.count - 1.0)) for event in recurring]
    total = total_variance([(mean.variance, mean.degrees_of_freedom), *parts]) if mean else None
    return StepTime(
        steady_state=judge_steadiness(window, numbers=numbers),
        drift=window.drift,
        drift_p=window.trend.p if window.trend else 1.0,
        core_seconds=core_seconds,
        recurring=recurring,
        one_time=tuple(sorted(logged.one_time, key=lambda event: event.step)),
        one_time_seconds=sum(
            event.seconds for event in logged.one_time if event.step >= window.first
        ),
        variance=total[0] if total else None,
        degrees_of_freedom=total[1] if total else 1.0,
        undecided_stalls=judge_single_stalls(
            single, window, core_seconds + sum(event.seconds_per_step for event in recurring)
        ),
    )
