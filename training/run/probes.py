"""Short probes after a run's own work: each leaves one thing out of a step, so that the lab learns
what it costs.

The weights no longer matter: what is kept of them is saved before.
``core/measurement/step_parts.py`` reads the times.
"""

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from itertools import pairwise
from typing import TypeVar

from torch.optim import Optimizer

from traindyno.callbacks import StepLogger, failure
from traindyno.callbacks.clock import now
from traindyno.core.run.probe_steps import WARM_UP_STEPS, probe_steps
from traindyno.core.step_log.line import (
    HELD_BATCHES,
    NO_EXCHANGE,
    NO_OPTIMIZER,
    PROBE,
    PROBED,
    STEP_SECONDS,
    WHOLE_STEP,
)
from traindyno.core.suite.choices import Compiler
from training.data.dataset import TokenDataset
from training.process.process_group import is_so_on_all_ranks
from training.process.run_settings import RunSettings
from training.run.train import held_batches, load_batches, one_step
from training.strategies import Setup, TrainingStrategy

Result = TypeVar("Result")


def probe(
    run: RunSettings,
    setup: Setup,
    strategy: TrainingStrategy,
    optimizer: Optimizer,
    dataset: TokenDataset,
    *,
    step_log: StepLogger,
) -> None:
    """Logs a phase for each probe.

    All ranks must call it: those that exchange gradients take the same steps.

    The first probe for which a rank has no memory is the last one. Raises the error if other ranks
    wait for that rank within a step, where they can't agree.
    """
    count = probe_steps(step_log.steps_of_this_process)
    is_alone = setup.topology.world_size == 1
    begin = now()
    held = _if_all_have_memory(
        lambda: held_batches(run, strategy, dataset, WARM_UP_STEPS + count),
        # Ranks that read a stream may exchange their counts of labels.
        are_apart=is_alone or dataset.train is not None,
    )
    if held is None:
        return
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    strategy.set_training(True)
    clock = setup.accelerator.make_clock()
    # A compiled model would be compiled once more without its exchange.
    can_be_apart = (
        setup.settings.compiler is Compiler.NONE and strategy.without_exchange() is not None
    )
    # Each probe leaves out what the one before does, and one thing more.
    probes = [WHOLE_STEP, HELD_BATCHES, *([NO_EXCHANGE] if can_be_apart else []), NO_OPTIMIZER]
    # Until each worker has made a batch, a loader is slower than it was.
    of_loader = range(WARM_UP_STEPS + run.settings.loader_workers + count)

    def step_seconds(name: str, *, is_apart: bool) -> list[float]:
        batches = load_batches(run, strategy, dataset, of_loader) if name == WHOLE_STEP else held
        with (strategy.without_exchange() if is_apart else None) or nullcontext():
            marks = []  # the ends of the steps, as the device's own clock marks them
            for of_step in batches:
                one_step(
                    of_step,
                    setup=setup,
                    strategy=strategy,
                    optimizer=optimizer,
                    updates=name != NO_OPTIMIZER,
                )
                marks.append(clock.mark())
            times = clock.resolve(marks)[-count - 1 :]
        return [after - before for before, after in pairwise(times)]

    for name in (*probes, *reversed(probes)):
        is_apart = NO_EXCHANGE in probes and name in (NO_EXCHANGE, NO_OPTIMIZER)
        work = partial(step_seconds, name, is_apart=is_apart)
        seconds = _if_all_have_memory(work, are_apart=is_alone or is_apart)
        if seconds is None:
            return
        step_log.add_phase(PROBE, begin, now(), {PROBED: name, STEP_SECONDS: seconds})
        begin = now()


def _if_all_have_memory(work: Callable[[], Result], *, are_apart: bool) -> Result | None:
    """The result; None on all ranks if one of them has no memory for it.

    ``are_apart``: no rank waits for another within the work.
    """
    result = None
    try:
        result = work()
    except (MemoryError, RuntimeError) as error:
        if not are_apart or failure.classify(error) != failure.OUT_OF_MEMORY:
            raise
    return result if is_so_on_all_ranks(result is not None) else None
