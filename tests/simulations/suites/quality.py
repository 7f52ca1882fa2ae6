"""Suites whose goal is the time to a quality: each trial has a seed of its own, and a seed learns
at its pace.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import ceil, exp, log
from statistics import fmean

from tests.simulations.logged_runs import (
    DOWNLOADING_SECONDS,
    FIRST_STEP_SECONDS,
    STARTING_SECONDS,
    result_of,
    session_of,
)
from tests.simulations.processes import noise
from tests.simulations.suites.logs import on_speed
from tests.simulations.suites.play import Played, play_suite
from tests.simulations.suites.simulated_suite import make_suite
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.step_log.line import TARGET_REACHED
from traindyno.core.suite.choices import GoalKind, Task
from traindyno.core.suite.goal import Goal
from traindyno.core.suite.suite import Run

ACCURACY = 0.9
STEPS_TO_TARGET = 200
HOSTS = 0.005
DRAWS = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """The steps to a target; ``levels`` are the logarithms of their means, ``deviation`` is their
    CV between seeds.
    """

    levels: tuple[float, ...]
    deviation: float
    evaluate_every: int = 2
    trials: int = 5
    #: All trials of a cell train with one seed: the script takes none.
    is_seed_fixed: bool = False

    def steps(self, cell: int, pace: float) -> int:
        """Until the first evaluation that reaches the target.

        ``pace``: of the seed, a logarithm.
        """
        needed = STEPS_TO_TARGET * exp(self.levels[cell] + pace)
        return max(1, ceil(needed / self.evaluate_every)) * self.evaluate_every


def play_quality(learning: Learning, name: str, number: int) -> Played:
    source = random.Random(f"quality {name} {number}")
    suite = make_suite(
        trials=learning.trials,
        matrix={"loader_workers": tuple(range(len(learning.levels)))},
        training={},
        goal=Goal(kind=GoalKind.FASTEST_TO, accuracy=ACCURACY),
    )
    if learning.is_seed_fixed:
        suite = replace(suite, workload=replace(suite.workload, task=Task.SCRIPT))
    fixed = [source.gauss(0, learning.deviation) for _ in learning.levels]

    def draw(run: Run, cell: int) -> tuple[RunResult, float | None]:
        pace = fixed[cell] if learning.is_seed_fixed else source.gauss(0, learning.deviation)
        steps = learning.steps(cell, pace)
        speed = exp(source.gauss(0, HOSTS))
        simulated = on_speed(noise()(source, steps), speed)
        session = session_of(
            simulated,
            host_id=f"host {run.run_id}",
            evaluations=_evaluations(steps, learning.evaluate_every),
            reason=TARGET_REACHED,
        )
        return result_of(run, suite, [session]), log(_seconds(steps, speed))

    verdict, best, values = play_suite(suite, f"{name} {number}", draw)
    return Played(
        verdict=verdict,
        best=best,
        truth=tuple(_truth(learning, cell) for cell in range(len(values))),
        later=None,
        values=values,
    )


def _evaluations(steps: int, every: int) -> Sequence[tuple[int, float]]:
    """The target is reached at the last step."""
    return [(step, ACCURACY * (step + 1) / steps) for step in range(every - 1, steps, every)]


@cache
def _truth(learning: Learning, cell: int) -> float:
    """Equal levels have the same truth: a draw of steps depends on the level alone."""
    source = random.Random("truth")
    paces = (source.gauss(0, learning.deviation) for _ in range(DRAWS))
    return fmean(
        _seconds(learning.steps(cell, pace), exp(source.gauss(0, HOSTS))) for pace in paces
    )


def _seconds(steps: int, speed: float) -> float:
    return STARTING_SECONDS + DOWNLOADING_SECONDS + FIRST_STEP_SECONDS + steps * speed
