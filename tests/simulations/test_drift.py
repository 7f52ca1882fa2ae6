"""Runs that drift as slowly as they last: their rate may be wrong, but then they are not called
steady.

The constants were chosen on normal noise and random walks; the noise here is skewed, with Student's
or Laplace's tails.
"""

import random
from collections.abc import Callable
from math import exp, sqrt

import pytest

from traindyno.core.measurement.step_time import measure_step_time

STEPS = 200
RUNS = 25
LEVELS: dict[str, Callable[[int], float]] = {
    "constant": lambda _: 1.0,
    "slow loader": lambda step: 1.6 if step < 80 else 1.0,
    "buffers that drain": lambda step: 0.8 if step < 40 else 1.0,
    "stair": lambda step: 1.5 if step < 50 else 1.2 if step < 100 else 1.0,
}


def skewed(source: random.Random) -> float:
    return source.expovariate(1) - 1


def laplace(source: random.Random) -> float:
    return (source.expovariate(1) - source.expovariate(1)) / sqrt(2)


def student(source: random.Random) -> float:
    spread = sum(source.gauss(0, 1) ** 2 for _ in range(5)) / 3
    return source.gauss(0, 1) / sqrt(spread)


NOISES = {"laplace": laplace, "skewed": skewed, "student": student}


def thermal(change: float, steps_to_warm: float) -> Callable[[int], float]:
    return lambda step: 1 + change * (1 - exp(-step / steps_to_warm))


#: The factor of a step's time, the level that it goes to, and the coefficient of variation of a
#: step.
DRIFTS: dict[str, tuple[Callable[[int], float], float, float]] = {
    **{
        f"thermal {change} in {tau}": (thermal(change, tau), 1 + change, 0.02)
        for change in (0.08, 0.15)
        for tau in (100, 150, 300)
    },
    "loader that decays": (lambda step: 1 + 0.6 * exp(-step / 40), 1.0, 0.02),
}


def simulate(
    level: Callable[[int], float], noise: str, variation: float, source: random.Random
) -> list[float]:
    return [
        15.0,
        *(level(step) * exp(variation * NOISES[noise](source)) for step in range(1, STEPS)),
    ]


@pytest.mark.parametrize("noise", sorted(NOISES))
@pytest.mark.parametrize("name", sorted(DRIFTS))
def test_a_drifting_run_is_right_or_called_not_steady(name: str, noise: str) -> None:
    level, final, variation = DRIFTS[name]
    wrong = 0
    for run in range(RUNS):
        measured = measure_step_time(
            simulate(level, noise, variation, random.Random(f"{name} {noise} {run}"))
        )
        wrong += measured.steady_state.is_reached and abs(measured.seconds / final - 1) > 0.02
    # 5 %, and two standard errors of so many runs
    assert wrong <= 0.05 * RUNS + 2 * sqrt(0.05 * 0.95 * RUNS)


@pytest.mark.parametrize("noise", sorted(NOISES))
@pytest.mark.parametrize("name", sorted(LEVELS))
def test_changes_of_level_are_no_drift(name: str, noise: str) -> None:
    within = 0
    for run in range(RUNS):
        measured = measure_step_time(
            simulate(LEVELS[name], noise, 0.02, random.Random(f"{name} {noise} {run}"))
        )
        within += measured.steady_state.is_reached and abs(measured.seconds - 1) <= 0.02
    assert within >= 0.9 * RUNS - 2 * sqrt(0.1 * 0.9 * RUNS)


@pytest.mark.parametrize("count", [25, 40, 60])
def test_the_noise_of_few_steps_is_no_drift(count: int) -> None:
    drifts = 0
    for run in range(200):
        source = random.Random(f"few {count} {run}")
        reason = measure_step_time(
            [source.lognormvariate(0, 0.05) for _ in range(count)]
        ).steady_state.reason
        drifts += reason is not None and "drift" in reason
    assert drifts <= 0.05 * 200 + 2 * sqrt(0.05 * 0.95 * 200)
