"""The long-run time of a step: the steady step time plus the recurring events at their rate."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, sqrt
from statistics import fmean

from traindyno.core.measurement.recurrence import (
    Events,
    OneTimeEvent,
    RecurringEvent,
    classify_phases,
    classify_stalls,
    recur_at_random,
)
from traindyno.core.measurement.stalls import Stall
from traindyno.core.measurement.steady_state import SteadyState, SteadyWindow, find_steady_window
from traindyno.core.statistics.autocorrelation import Trend, estimate_mean
from traindyno.core.statistics.student_t import t_half_width

CONFIDENCE = 0.95
NEGLIGIBLE_SHARE = 0.01
MOST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """``seconds`` is the mean time of a step in the long run; ``core_seconds`` is its part without recurring events.

    ``one_time`` holds the events of the whole log that are excluded from both; ``one_time_seconds`` is the sum of those
    within the steady window. ``variance`` is that of ``seconds``; None below 20 steps.
    """

    steady_state: SteadyState
    trend: Trend | None
    core_seconds: float
    recurring: tuple[RecurringEvent, ...]
    one_time: tuple[OneTimeEvent, ...]
    one_time_seconds: float
    variance: float | None
    degrees_of_freedom: float

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
        return None if self.variance is None or self.seconds <= 0 else sqrt(self.variance) / self.seconds

    def relative_half_width(self, *, confidence: float = CONFIDENCE) -> float | None:
        """Half width of the interval of ``seconds`` by Student's t, as a share of it; None below 20 steps."""
        error = self.relative_error
        return None if error is None else t_half_width(error, self.degrees_of_freedom, confidence)


def measure_step_time(
    step_seconds: Sequence[float],
    *,
    phases: Mapping[int, Mapping[str, float]] | None = None,
    names_after_steps: Iterable[str] = (),
    warmup_steps: int | None = None,
    stride: int = 1,
) -> StepTime:
    """``step_seconds`` are without the ``phases``, whose seconds are given by index of the step and by name.

    ``stride``: so many logged steps are one here; the texts of the steady state are in logged ones.
    """
    window = find_steady_window(step_seconds, warmup_steps=warmup_steps, stride=stride)
    first = window.state.warmup_steps
    count = len(step_seconds) - first
    logged = classify_phases(phases or {}, count=len(step_seconds), names_after_steps=names_after_steps)
    if count <= 0:
        return _without_steps(window.state, logged)
    core = fmean(_without_stalls(step_seconds, window)[first:])
    stalled = _judge_unexplained(classify_stalls(window.stalls, first=first, count=count), core * count, count)
    recurring = (*logged.recurring, *stalled.recurring)
    one_time = (*logged.one_time, *stalled.one_time, *stalled.unexplained)
    variance, degrees = _variance(step_seconds, window, recurring)
    return StepTime(
        steady_state=_with_unexplained(window.state, stalled.unexplained, core * count, stride),
        trend=window.trend,
        core_seconds=core,
        recurring=recurring,
        one_time=tuple(sorted(one_time, key=lambda event: event.step)),
        one_time_seconds=sum(event.seconds for event in one_time if event.step >= first),
        variance=variance,
        degrees_of_freedom=degrees,
    )


def _without_steps(state: SteadyState, logged: Events) -> StepTime:
    return StepTime(
        steady_state=state,
        trend=None,
        core_seconds=0.0,
        recurring=logged.recurring,
        one_time=logged.one_time,
        one_time_seconds=0.0,
        variance=None,
        degrees_of_freedom=1.0,
    )


def _without_stalls(step_seconds: Sequence[float], window: SteadyWindow) -> list[float]:
    """A step that stalls has the level of the steps around it instead."""
    seconds = list(step_seconds)
    for index in _stalled_steps(window.stalls):
        seconds[index] = min(seconds[index], exp(window.levels[index]))
    return seconds


def _stalled_steps(stalls: Sequence[Stall]) -> Iterable[int]:
    return (index for stall in stalls for index in range(stall.first, stall.last + 1))


def _judge_unexplained(events: Events, core_seconds: float, count: int) -> Events:
    """Stalls of which too few were seen count as recurring if they take 1 % of the time at most."""
    seconds = [event.seconds for event in events.unexplained]
    if not seconds or sum(seconds) > NEGLIGIBLE_SHARE * core_seconds:
        return events
    return replace(events, recurring=(*events.recurring, recur_at_random(seconds, count)), unexplained=())


def _with_unexplained(
    state: SteadyState, unexplained: Sequence[OneTimeEvent], core_seconds: float, stride: int
) -> SteadyState:
    if not unexplained or not state.is_reached:
        return state
    places = [str(event.step * stride) for event in unexplained[:MOST_NAMED]] + ["…"] * (len(unexplained) > MOST_NAMED)
    share = sum(event.seconds for event in unexplained) / core_seconds
    reason = (
        f"stalls at {'step' if len(unexplained) == 1 else 'steps'} {', '.join(places)} add {share:.1%} to the time, "
        "and too few were seen to decide whether they recur; the rate excludes them"
    )
    return replace(state, is_reached=False, reason=reason, stall_share=share)


def _variance(
    step_seconds: Sequence[float], window: SteadyWindow, recurring: Sequence[RecurringEvent]
) -> tuple[float | None, float]:
    """The variance of the long-run step time, and its degrees of freedom after Welch and Satterthwaite."""
    core = estimate_mean(_without_stalls(step_seconds, window)[window.state.warmup_steps :])
    if core is None:
        return None, 1.0
    parts = [(core.variance, core.degrees_of_freedom)]
    parts += [(event.variance_per_step, max(1.0, event.count - 1.0)) for event in recurring]
    total = sum(part for part, _ in parts)
    denominator = sum(part * part / degrees for part, degrees in parts)
    return total, total * total / denominator if denominator > 0 else core.degrees_of_freedom
