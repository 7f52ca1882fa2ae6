"""Short probes after a run's own work: each leaves one thing out of a step, so that the lab learns what it costs.

The weights no longer matter: what is kept of them is saved before. ``core/measurement/step_parts.py`` reads the times.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise

import torch
from torch.optim import Optimizer

from traindyno.callbacks import StepLogger
from traindyno.callbacks.clock import HostClock, now
from traindyno.core.step_log.line import HELD_BATCHES, NO_EXCHANGE, NO_OPTIMIZER, PROBE, PROBED, STEP_SECONDS
from traindyno.core.suite.choices import Compiler
from training.data.batch import Batch
from training.data.dataset import TokenDataset
from training.process.run_settings import RunSettings
from training.run.train import held_batches, one_step
from training.strategies import Setup, TrainingStrategy

MOST_STEPS, LEAST_STEPS = 20, 5
# Of the run's steps; a probe of a short run is as short.
SHARE_OF_RUN = 10
WARM_UP_STEPS = 2


def probe(
    run: RunSettings,
    setup: Setup,
    strategy: TrainingStrategy,
    optimizer: Optimizer,
    dataset: TokenDataset,
    *,
    step_log: StepLogger,
) -> None:
    """Logs a phase for each probe. All ranks must call it: those that exchange gradients take the same steps.

    A probe that needs more memory than the device has stays unknown: without its exchange, a rank waits for no other.
    """
    count = max(LEAST_STEPS, min(MOST_STEPS, step_log.steps_of_this_process // SHARE_OF_RUN))
    begin = now()
    batches = held_batches(run, strategy, dataset, WARM_UP_STEPS + count)
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    strategy.set_training(True)
    clock = setup.accelerator.make_clock()
    try:
        for name, context, updates in _probes(setup, strategy):
            with context:
                seconds = _step_seconds(
                    batches, clock, setup=setup, strategy=strategy, optimizer=optimizer, updates=updates
                )
            step_log.add_phase(PROBE, begin, now(), {PROBED: name, STEP_SECONDS: seconds})
            begin = now()
    except (torch.OutOfMemoryError, MemoryError):
        step_log.add_phase(PROBE, begin, now(), {})


def _probes(setup: Setup, strategy: TrainingStrategy) -> Iterator[tuple[str, AbstractContextManager[None], bool]]:
    """Name, context, and whether the optimizer changes the weights. A compiled model would be compiled once more."""
    yield HELD_BATCHES, nullcontext(), True
    is_eager = setup.settings.compiler is Compiler.NONE
    without_exchange = strategy.without_exchange() if is_eager else None
    if without_exchange is not None:
        yield NO_EXCHANGE, without_exchange, True
        without_exchange = strategy.without_exchange()
    yield NO_OPTIMIZER, without_exchange or nullcontext(), False


def _step_seconds(
    batches: Sequence[list[Batch]],
    clock: HostClock,
    *,
    setup: Setup,
    strategy: TrainingStrategy,
    optimizer: Optimizer,
    updates: bool,
) -> list[float]:
    """Of the steps after the warm-up, on the device's own clock."""
    marks = []
    for held in batches:
        one_step(held, setup=setup, strategy=strategy, optimizer=optimizer, updates=updates)
        marks.append(clock.mark())
    times = clock.resolve(marks)[WARM_UP_STEPS - 1 :]
    return [end - begin for begin, end in pairwise(times)]
