"""Step times of the suites that judge the method.

No constant of the lab was chosen on them (see docs/method.md).
"""

import random
from math import exp

from tests.simulations.processes import Event, Process, Simulated, level, noise


def pareto(exponent: float, scale: float = 0.05) -> Process:
    """A step takes 1 s and ``scale`` × a Lomax variable more; below an exponent of 2 its variance
    is infinite.
    """

    def simulate(source: random.Random, steps: int) -> Simulated:
        seconds = [1 + scale * (source.paretovariate(exponent) - 1) for _ in range(steps)]
        return Simulated(step_seconds=seconds, long_run_seconds=1 + scale / (exponent - 1))

    return simulate


def stalled(every: int, seconds: float, *, phase: str = "same", evaluate_every: int = 0) -> Process:
    """A stall that no phase names at each ``every`` steps, of a random phase or the same one in all
    runs.
    """

    def simulate(source: random.Random, steps: int) -> Simulated:
        first = source.randrange(every) if phase == "random" else every
        events = [Event(step=step, seconds=seconds) for step in range(first or every, steps, every)]
        evaluations = range(evaluate_every, steps, evaluate_every) if evaluate_every else ()
        events += [Event(step=step, seconds=8.0, name="evaluate") for step in evaluations]
        often = seconds / every + (8.0 / evaluate_every if evaluate_every else 0.0)
        return Simulated(
            step_seconds=noise()(source, steps).step_seconds,
            long_run_seconds=1 + often,
            events=events,
        )

    return simulate


def drifting(share: float, steps_to_end: int) -> Process:
    """Slows down by ``share`` at an even pace, then holds."""
    return level(lambda step: 1 + share * min(1.0, step / steps_to_end), 1 + share)


def decaying(share: float, steps_to_settle: float) -> Process:
    """Begins slower by ``share`` and approaches 1."""
    return level(lambda step: 1 + share * exp(-step / steps_to_settle), 1.0)


def sawtooth(height: float, period: int) -> Process:
    """Rises by ``height`` within each period, and falls back."""
    return level(lambda step: 1 + height * (step % period) / period, 1 + height / 2)


def switching(share_of_steps: float, slower: float, dwell: int) -> Process:
    """Two states: slower by ``slower`` in a share of the steps, for ``dwell`` steps on average."""

    def simulate(source: random.Random, steps: int) -> Simulated:
        is_slow = source.random() < share_of_steps
        seconds = []
        for quiet in noise()(source, steps).step_seconds:
            leaving = 1 / dwell if is_slow else share_of_steps / (1 - share_of_steps) / dwell
            is_slow ^= source.random() < leaving
            seconds.append(quiet * (1 + slower * is_slow))
        return Simulated(step_seconds=seconds, long_run_seconds=1 + slower * share_of_steps)

    return simulate
