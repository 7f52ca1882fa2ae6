"""Runs that end as soon as their step time is known well enough, and whether it then is."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from statistics import median

from tests.simulations.processes import Process, with_stalls
from traindyno.core.measurement.step_time import measure_step_time
from traindyno.core.measurement.stop_rule import FIRST_LOOK_STEPS, GROWTH, is_known_well_enough

MOST_STEPS = 6_000
TARGET = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Stops:
    """The share of runs that ended within 6,000 steps, and of these the share within 1 % of the
    truth.
    """

    stopped: float
    true: float
    median_steps: float | None


def measure_stops(process: Process, sources: Iterator[random.Random]) -> Stops:
    stops = []
    true = 0
    count = 0
    for source in sources:
        count += 1
        simulated = process(source, MOST_STEPS)
        seconds = with_stalls(simulated)
        steps = _stopping_step(seconds)
        if steps is not None:
            stops.append(steps)
            measured_seconds = measure_step_time(seconds[:steps]).seconds
            true += abs(measured_seconds / simulated.long_run_seconds - 1) <= TARGET
    return Stops(
        stopped=len(stops) / count,
        true=true / len(stops) if stops else 1.0,
        median_steps=median(stops) if stops else None,
    )


def _stopping_step(step_seconds: list[float]) -> int | None:
    look = 1
    while (steps := ceil(FIRST_LOOK_STEPS * GROWTH ** (look - 1))) <= MOST_STEPS:
        if is_known_well_enough(step_seconds[:steps], relative_half_width=TARGET, look=look):
            return steps
        look += 1
    return None
