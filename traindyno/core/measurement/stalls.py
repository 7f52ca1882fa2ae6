"""Stalls: steps, or short runs of steps, that take far longer than the steps around them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import exp, log
from statistics import fmean, median, variance

from traindyno.core.step_log.line import BATCH_SEARCH, PAUSE
from traindyno.figures.autocorrelation import LEAST_DEVIATION
from traindyno.figures.log_means import LEAST_COUNT

STALL = "stall"
_DEVIATIONS_PER_MAD = 1.4826  # the ratio for a normal distribution
_NEIGHBOURS = 7  # steps on each side
_STALL_DEVIATIONS = 6.0
_LEAST_STALL = log(1.25)
ONE_TIME_PHASES = (
    "launch",
    "import",
    "fork",
    "load",
    "restore",
    "setup",
    "compile",
    PAUSE,
    BATCH_SEARCH,
    "last_checkpoint",
    "teardown",
)
_ALIKE_FACTOR = 3.0  # stalls of one cause differ less than this from the next longer one


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """A stall from step ``first`` to step ``last``.

    ``seconds`` is the time beyond the level of the steps around them. ``name`` is the name of a
    logged phase, or else "stall".
    """

    first: int
    last: int
    seconds: float
    name: str = STALL


def log_levels(step_seconds: Sequence[float]) -> list[float]:
    """Logarithms of the step times; a step that stalls has the median of its neighbourhood (15
    steps) instead.

    A stall is at least 25 % and six robust deviations above or below that median.
    """
    logs = [log(max(seconds, 1e-9)) for seconds in step_seconds]
    around = (
        logs[max(0, index - _NEIGHBOURS) : index + _NEIGHBOURS + 1] for index in range(len(logs))
    )
    typical = [sorted(levels)[len(levels) // 2] for levels in around]
    distances = [abs(value - level) for value, level in zip(logs, typical, strict=True)]
    deviation = max(_DEVIATIONS_PER_MAD * median(distances), LEAST_DEVIATION)
    reach = max(_STALL_DEVIATIONS * deviation, _LEAST_STALL)
    return [
        value if distance <= reach else level
        for value, level, distance in zip(logs, typical, distances, strict=True)
    ]


def find_stalls(step_seconds: Sequence[float], levels: Sequence[float]) -> tuple[Stall, ...]:
    """Runs of steps that exceed their level; ``levels`` are logarithms and differ from the steps
    where these stall.
    """
    stalls: list[Stall] = []
    for index, (seconds, level) in enumerate(zip(step_seconds, levels, strict=True)):
        excess = seconds - exp(level)
        if excess <= 1e-6 * seconds:
            continue
        previous = stalls[-1] if stalls else None
        if previous is not None and index - previous.last <= 1:
            stalls[-1] = Stall(first=previous.first, last=index, seconds=previous.seconds + excess)
        else:
            stalls.append(Stall(first=index, last=index, seconds=excess))
    return tuple(stalls)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneTimeEvent:
    """Event that happened once.

    ``step`` is its number; ``seconds`` are excluded from the rate and added once.
    """

    name: str
    step: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurringEvent:
    """It happens once in ``steps_between`` steps, each time for ``seconds`` on average; ``count``
    were seen.

    ``variance_per_step`` is that of the estimate of ``seconds_per_step``, in square seconds.
    ``longest_seconds`` is of stalls.
    """

    name: str
    count: int
    steps_between: float
    seconds: float
    variance_per_step: float = 0.0
    longest_seconds: float | None = None

    @property
    def seconds_per_step(self) -> float:
        return self.seconds / self.steps_between


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """Events of phases or of stalls: ``recurring`` ones, and ``single`` ones, which show no
    recurrence.
    """

    recurring: tuple[RecurringEvent, ...]
    single: tuple[Stall, ...]
    one_time: tuple[OneTimeEvent, ...] = ()


def classify_phases(
    phases: Mapping[int, Mapping[str, float]],
    *,
    count: int,
    first: int = 0,
    names_after_steps: Iterable[str] = (),
) -> Events:
    """Divide logged phases into one-time and recurring events.

    Loading and compiling happen once, however often they are logged. Another phase recurs if it was
    logged twice, or once and not before half of the steps: a schedule of "every n steps" starts
    after n steps. Any other belongs to the warm-up if it was logged before step ``first``.

    Args:
        phases: Seconds by index of the step's interval and by name, over all steps of the log.
        count: Steps of the log.
        first: First step that counts.
        names_after_steps: Phases that are logged after a step.
    """
    after_steps = frozenset(names_after_steps)
    places: dict[str, list[tuple[int, float]]] = {}
    for index, by_name in phases.items():
        for name, seconds in by_name.items():
            places.setdefault(name, []).append((index, seconds))
    recurring = []
    one_time = []
    single = []
    for name, events in places.items():
        steps_between = _phase_period(
            [index for index, _ in sorted(events)], count, name in after_steps
        )
        if name in ONE_TIME_PHASES or (steps_between is None and events[0][0] < first):
            one_time += [
                OneTimeEvent(name=name, step=index, seconds=seconds) for index, seconds in events
            ]
        elif steps_between is None:
            single += [
                Stall(first=index, last=index, seconds=seconds, name=name)
                for index, seconds in events
            ]
        else:
            recurring.append(_recurring(name, [seconds for _, seconds in events], steps_between))
    return Events(recurring=tuple(recurring), one_time=tuple(one_time), single=tuple(single))


def classify_stalls(stalls: Sequence[Stall], *, count: int, first: int = 0) -> Events:
    """Divide stalls of the ``count`` steps from ``first`` on into events that recur and single
    ones.

    Two or more that take about as long as each other recur: three or more at equal distances at
    their period, others as often as they were seen.
    """
    groups = _group_alike(stalls)
    recurring = list[RecurringEvent]()
    for alike in groups:
        seconds = [stall.seconds for stall in alike]
        places = [stall.first - first for stall in alike]
        period = _even_period(places, count) if len(places) >= LEAST_COUNT else None
        if period is not None:
            recurring.append(
                replace(_recurring(STALL, seconds, period), longest_seconds=max(seconds))
            )
        elif len(seconds) > 1:
            recurring.append(recur_at_random(seconds, count))
    return Events(
        recurring=tuple(recurring), single=tuple(alike[0] for alike in groups if len(alike) == 1)
    )


def is_one_of(event: RecurringEvent, seconds: float) -> bool:
    """Whether a stall of this length may have the cause of recurring ones."""
    longest = event.longest_seconds or event.seconds
    shows_recurrence = event.name == STALL and event.count > 1
    return shows_recurrence and event.seconds / _ALIKE_FACTOR <= seconds <= _ALIKE_FACTOR * longest


def are_alike(seconds: float, other: float) -> bool:
    """Whether stalls of these lengths may have one cause."""
    return max(seconds, other) <= _ALIKE_FACTOR * min(seconds, other)


def are_at_one_step(step: int, other: int) -> bool:
    """Whether something that happens once, at a step of the run, may have happened at both."""
    return abs(step - other) <= max(1.5, 0.1 * max(step, other))


def recur_at_random(seconds: Sequence[float], count: int, name: str = STALL) -> RecurringEvent:
    """Stalls of a Poisson process: the sum of their squares is the variance of their sum (a
    compound one).
    """
    squares = sum(value * value for value in seconds)
    return RecurringEvent(
        name=name,
        count=len(seconds),
        steps_between=count / len(seconds),
        seconds=fmean(seconds),
        variance_per_step=squares / count**2,
        longest_seconds=max(seconds),
    )


def _recurring(name: str, seconds: Sequence[float], steps_between: float) -> RecurringEvent:
    spread = variance(seconds) / len(seconds) if len(seconds) > 1 else 0.0
    return RecurringEvent(
        name=name,
        count=len(seconds),
        steps_between=steps_between,
        seconds=fmean(seconds),
        variance_per_step=spread / steps_between**2,
    )


def _phase_period(places: Sequence[int], count: int, is_after_steps: bool) -> float | None:
    """Steps between two phases of a kind; None if one alone does not show it."""
    if len(places) == 1:
        expected_again = 2 * places[0]
        return (
            float(places[0])
            if expected_again > count or (expected_again == count and is_after_steps)
            else None
        )
    return _even_period(places, count) or count / len(places)


def _even_period(places: Sequence[int], count: int) -> float | None:
    """The period of phases at equal distances, with begin and end of the log no farther away than
    one period.

    A schedule begins with the run: of two places, the first is as far from the run's begin as from
    the second.
    """
    scheduled = places if len(places) >= LEAST_COUNT else [0, *places]
    if len(scheduled) < LEAST_COUNT:
        return None
    mean_gap = (scheduled[-1] - scheduled[0]) / (len(scheduled) - 1)
    outer_gap = max(places[0], count - places[-1])
    # in steps; a wider tolerance of three phases would accept random spacing too often
    tolerance = 1.5 if len(scheduled) <= LEAST_COUNT else max(1.5, 0.1 * mean_gap)
    is_even = all(
        abs(after - before - mean_gap) <= tolerance for before, after in pairwise(scheduled)
    )
    return mean_gap if is_even and outer_gap <= mean_gap + tolerance else None


def _group_alike(stalls: Sequence[Stall]) -> list[list[Stall]]:
    """Groups of stalls of similar length; each group is in order of time."""
    groups: list[list[Stall]] = []
    for stall in sorted(stalls, key=lambda stall: stall.seconds):
        if groups and stall.seconds <= _ALIKE_FACTOR * groups[-1][-1].seconds:
            groups[-1].append(stall)
        else:
            groups.append([stall])
    return [sorted(group, key=lambda stall: stall.first) for group in groups]
