"""Step times of known processes: what a run shows, and what its steps take in the long run."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from math import exp

COMPILE_SECONDS = 40.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """It comes before step ``step``, or at its begin.

    ``name`` None: nothing is logged, the step takes longer.
    """

    step: int
    seconds: float
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """The steps of a simulated run.

    ``long_run_seconds`` is the mean time per step, with all that recurs, of a run without end.
    """

    step_seconds: list[float]
    long_run_seconds: float
    events: list[Event] = field(default_factory=list)
    has_one_time_events: bool = False


Process = Callable[[random.Random, int], Simulated]


def autoregression(
    source: random.Random, steps: int, *, correlation: float, deviation: float
) -> list[float]:
    """Step times of mean 1 s whose logarithms are an autoregression of first order."""
    value = source.gauss(0, deviation)
    innovation = deviation * (1 - correlation**2) ** 0.5
    seconds = []
    for _ in range(steps):
        value = correlation * value + source.gauss(0, innovation)
        seconds.append(exp(value - deviation**2 / 2))
    return seconds


def noise(correlation: float = 0.0, deviation: float = 0.02) -> Process:
    def simulate(source: random.Random, steps: int) -> Simulated:
        seconds = autoregression(source, steps, correlation=correlation, deviation=deviation)
        return Simulated(step_seconds=seconds, long_run_seconds=1.0)

    return simulate


def level(
    of_step: Callable[[int], float], long_run_seconds: float, deviation: float = 0.02
) -> Process:
    """Independent noise around a level that changes with the step."""

    def simulate(source: random.Random, steps: int) -> Simulated:
        seconds = autoregression(source, steps, correlation=0.0, deviation=deviation)
        changed = [value * of_step(step) for step, value in enumerate(seconds)]
        return Simulated(step_seconds=changed, long_run_seconds=long_run_seconds)

    return simulate


def second_compilation(*, is_logged: bool) -> Process:
    """A compilation at a step of the first half."""

    def simulate(source: random.Random, steps: int) -> Simulated:
        name = "compile" if is_logged else None
        event = Event(step=source.randrange(2, steps // 2), seconds=COMPILE_SECONDS, name=name)
        seconds = noise()(source, steps).step_seconds
        return Simulated(
            step_seconds=seconds, long_run_seconds=1.0, events=[event], has_one_time_events=True
        )

    return simulate


def early_recompilations(source: random.Random, steps: int) -> Simulated:
    """Two compilations within the first 4 % of the steps, not logged."""
    events = [
        Event(step=source.randrange(1, steps // 25), seconds=COMPILE_SECONDS) for _ in range(2)
    ]
    seconds = noise()(source, steps).step_seconds
    return Simulated(
        step_seconds=seconds, long_run_seconds=1.0, events=events, has_one_time_events=True
    )


def periodic(every: int, seconds: float, name: str | None = None) -> Process:
    """A stall of a step, or a phase between two steps, after each ``every`` steps."""

    def simulate(source: random.Random, steps: int) -> Simulated:
        places = range(every, steps, every)
        events = [
            Event(step=place, seconds=seconds * source.uniform(0.9, 1.1), name=name)
            for place in places
        ]
        return Simulated(
            step_seconds=noise()(source, steps).step_seconds,
            long_run_seconds=1 + seconds / every,
            events=events,
        )

    return simulate


def checkpoints_and_evaluation(source: random.Random, steps: int) -> Simulated:
    """A save takes 5 s after each 50 steps, an evaluation 12 s after each 80."""
    saved = periodic(50, 5.0, "save")(source, steps)
    evaluated = periodic(80, 12.0, "evaluate")(source, steps)
    return Simulated(
        step_seconds=saved.step_seconds,
        long_run_seconds=1 + 5 / 50 + 12 / 80,
        events=[*saved.events, *evaluated.events],
    )


def random_stalls(share: float, seconds: float) -> Process:
    def simulate(source: random.Random, steps: int) -> Simulated:
        events = [
            Event(step=step, seconds=seconds) for step in range(1, steps) if source.random() < share
        ]
        return Simulated(
            step_seconds=noise()(source, steps).step_seconds,
            long_run_seconds=1 + share * seconds,
            events=events,
        )

    return simulate


def warming_up(drift: float, steps_to_warm: float) -> Process:
    """A machine that slows down by ``drift`` while it warms up, at an exponential rate."""
    return level(lambda step: 1 + drift * (1 - exp(-step / steps_to_warm)), 1 + drift)


def with_stalls(simulated: Simulated) -> list[float]:
    """Step times with what is not logged in them."""
    seconds = list(simulated.step_seconds)
    for event in simulated.events:
        if event.name is None:
            seconds[event.step] += event.seconds
    return seconds
