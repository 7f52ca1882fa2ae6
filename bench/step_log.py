"""The time that a training loop spends on writing one step to the step log."""

import tempfile
import time
from collections.abc import Callable

import torch

from bench.alternation import alternate
from bench.figures import Figure, Section, Spread, at_most
from bench.groups import TITLES, command
from traindyno.callbacks import StepLogger

STEP_MILLISECONDS = 10
SHARE_PERCENT = 1
STEPS, ROUNDS = 20_000, 11
QUICK_STEPS, QUICK_ROUNDS = 2000, 3
LOSS = torch.tensor(1.5)


def measure(*, is_quick: bool) -> Section:
    steps = QUICK_STEPS if is_quick else STEPS
    compared = alternate(
        lambda: bare_microseconds(steps),
        lambda: logged_microseconds(steps),
        rounds=QUICK_ROUNDS if is_quick else ROUNDS,
    )
    cost = compared.difference
    to_percent = 1e-3 / STEP_MILLISECONDS * 100
    share = Spread(
        median=cost.median * to_percent, least=cost.least * to_percent, most=cost.most * to_percent, count=cost.count
    )
    return Section(
        title=TITLES["step_log"],
        command=command("step_log"),
        figures=(
            Figure(name="one step, in a step log on disk", value=cost, unit="µs"),
            Figure(
                name=f"share of a step of {STEP_MILLISECONDS} ms", value=share, unit="%", budget=at_most(SHARE_PERCENT)
            ),
        ),
        notes=("With tokens, learning rate, a loss that is a tensor, and peak memory; less an empty loop.",),
    )


def bare_microseconds(steps: int) -> float:
    return _microseconds_per_step(steps, lambda: None)


def logged_microseconds(steps: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        log = StepLogger(folder)
        log.open({})

        def write_step() -> None:
            with log.step(8, 4096, 1e-4) as step:
                step.loss = LOSS

        cost = _microseconds_per_step(steps, write_step)
        log.close()
    return cost


def _microseconds_per_step(steps: int, do_step: Callable[[], None]) -> float:
    began = time.perf_counter()
    for _ in range(steps):
        do_step()
    return (time.perf_counter() - began) / steps * 1e6
