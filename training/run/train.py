"""The part of a run that is measured: from sequences on disk to trained weights."""

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import ceil
from zlib import crc32

import numpy as np
import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from traindyno.callbacks import StepLogger
from traindyno.core.measurement.stop_rule import (
    STEPS_TO_TELL,
    is_known_well_enough,
    is_look_due,
    steps_that_last,
)
from traindyno.core.run.processes import global_batch_size, scaled_learning_rate
from traindyno.core.run.record import QualityTarget, RunMeasurement
from traindyno.core.step_log.line import RATE_KNOWN, TARGET_REACHED, LoggedStep
from traindyno.figures.in_job.outpaced import WARM_UP_STEPS
from training.checkpoints.checkpoints import Checkpoints
from training.data.batch import Batch, sample_count, token_count
from training.data.collate import Collate, choose_collate
from training.data.dataset import TokenDataset
from training.data.loader import StepBatches, load
from training.errors import LossDiverged
from training.models.gradients import drop_gradients
from training.models.optimizer import build_optimizer, schedule_learning_rate
from training.process.process_group import decided_by_first_rank, number_of_first_rank
from training.process.run_settings import RunSettings
from training.strategies import Setup, TrainingStrategy


class Stopping:
    """The first rank decides, the others follow.

    At the quality ``target`` the run has done its work, and where the measurement has
    ``least_seconds``, after the number of steps that it sets itself.
    """

    def __init__(self, measurement: RunMeasurement, target: QualityTarget | None) -> None:
        self._target = target
        self._is_target_reached = False
        self._half_width = (
            measurement.stop_when.relative_half_width if measurement.stop_when else None
        )
        self._least_seconds = measurement.least_seconds
        self._least_steps = measurement.max_steps
        self._own_steps: int | None = None
        self._warmup_steps = measurement.warmup
        self._step_seconds: list[float] = []
        self._previous_end: float | None = None
        self._looks = 0

    def observe(self, steps: Iterable[LoggedStep]) -> None:
        """Counts the time between two steps, in which a checkpoint may be, to the later step."""
        for step in steps:
            # the speed would be a speed of meaningless numbers
            if step.loss is not None and not math.isfinite(step.loss):
                raise LossDiverged(f"the loss of step {step.step} is {step.loss}")
        if self._half_width is None and self._least_seconds is None:
            return
        for step in steps:
            begin = step.begin if self._previous_end is None else self._previous_end
            self._step_seconds.append(step.end - begin)
            self._previous_end = step.end

    def observe_evaluation(self, metrics: Mapping[str, float]) -> None:
        """All ranks call it after each evaluation."""
        if self._target is not None:
            value = metrics[self._target.quality.value]
            self._is_target_reached = decided_by_first_rank(self._target.is_reached(value))

    def should_stop(self, step_log: StepLogger) -> bool:
        if self._least_seconds is not None and step_log.steps_of_this_process >= STEPS_TO_TELL:
            if self._own_steps is None:
                step_log.close_window()
                counted = self._step_seconds[WARM_UP_STEPS:]
                self._own_steps = number_of_first_rank(
                    max(self._least_steps, steps_that_last(self._least_seconds, counted))
                )
            if step_log.steps >= self._own_steps:
                return True
        reason = (
            TARGET_REACHED
            if self._is_target_reached
            else RATE_KNOWN
            if self._is_rate_known(step_log)
            else None
        )
        if reason is not None:
            step_log.ends_early(reason)
        return reason is not None

    def _is_rate_known(self, step_log: StepLogger) -> bool:
        if self._half_width is None or not is_look_due(step_log.steps_of_this_process, self._looks):
            return False
        self._looks += 1
        step_log.close_window()
        return decided_by_first_rank(
            is_known_well_enough(
                self._step_seconds,
                relative_half_width=self._half_width,
                look=self._looks,
                warmup_steps=self._warmup_steps,
            )
        )


def train(
    run: RunSettings,
    setup: Setup,
    strategy: TrainingStrategy,
    dataset: TokenDataset,
    *,
    step_log: StepLogger,
    should_stop: Callable[[StepLogger], bool],
    after_step: Callable[[], None] = lambda: None,
    checkpoints: Checkpoints | None = None,
) -> None:
    """Begins after the last step of the checkpoint that it resumes from, if there is one.

    ``after_step`` is called between two steps, by all ranks, before a checkpoint of the step is
    written.
    """
    settings = run.settings
    samples_per_step = global_batch_size(settings, setup.topology.world_size)
    learning_rate = scaled_learning_rate(settings.rate, samples_per_step)
    optimizer = strategy.build_optimizer(
        lambda parameters: build_optimizer(parameters, settings, learning_rate)
    )
    all_steps = ceil(run.workload.examples / samples_per_step)
    sets_own_number = run.measurement.least_seconds is not None
    step_count = all_steps if sets_own_number else min(run.measurement.max_steps, all_steps)
    done = checkpoints.resume(optimizer) if checkpoints else 0
    run_steps(
        load_batches(run, strategy, dataset, range(done, step_count)),
        setup=setup,
        strategy=strategy,
        optimizer=optimizer,
        schedule=schedule_learning_rate(optimizer, settings, steps=all_steps, done=done),
        step_log=step_log,
        should_stop=should_stop,
        after_step=after_step,
        checkpoints=checkpoints,
    )


def run_steps(
    batches_of_steps: Iterable[list[Batch]],
    *,
    setup: Setup,
    strategy: TrainingStrategy,
    optimizer: Optimizer,
    schedule: LRScheduler | None = None,
    step_log: StepLogger,
    should_stop: Callable[[StepLogger], bool],
    after_step: Callable[[], None],
    checkpoints: Checkpoints | None = None,
) -> None:
    strategy.set_training(True)
    counted = (
        (batches, sum(map(sample_count, batches)), sum(map(token_count, batches)))
        for batches in batches_of_steps
    )
    for batches, all_samples, all_tokens in setup.accelerator.load_ahead(counted):
        samples = strategy.share(all_samples)
        tokens = strategy.share(all_tokens)
        with step_log.step(samples, tokens, optimizer.param_groups[0]["lr"]) as step:
            _seed(setup.settings.seed, step_log.steps + 1, strategy.data_rank)
            step.loss = one_step(batches, setup=setup, strategy=strategy, optimizer=optimizer)
            if schedule is not None:
                schedule.step()
        after_step()
        if checkpoints:
            checkpoints.after_step(step_log.steps)
        if should_stop(step_log):
            break
    if checkpoints:
        checkpoints.finish()
    step_log.close_window()


def _seed(seed: int, step: int, data_rank: int) -> None:
    """A resumed run draws the numbers of an uninterrupted one.

    Processes of one replica draw the same, others don't.
    """
    drawn = crc32(f"{seed}/{step}/{data_rank}".encode())
    torch.default_generator.manual_seed(drawn)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed(drawn)
    random.seed(drawn)
    np.random.seed(drawn)


def one_step(
    batches: list[Batch], *, setup: Setup, strategy: TrainingStrategy, optimizer: Optimizer
) -> Tensor | None:
    """Does one step of the training. Returns [], the loss; None on ranks that hold none."""
    accelerator = setup.accelerator
    max_norm = setup.settings.gradient_clip_norm

    def clip() -> None:
        if max_norm is not None:
            strategy.clip_gradients(max_norm)

    loss = strategy.forward_backward([accelerator.to_device(batch) for batch in batches])
    setup.number_format.step(optimizer, clip, strategy.agree_on_overflow)
    drop_gradients(optimizer)
    accelerator.end_step()
    return loss


def load_batches(
    run: RunSettings, strategy: TrainingStrategy, dataset: TokenDataset, steps: range
) -> Iterator[list[Batch]]:
    collate = collate_for(run, dataset)
    rank = strategy.data_rank
    world_size = strategy.data_world_size
    if dataset.train is not None:
        batches = StepBatches(
            dataset.train, collate, run.settings, data_rank=rank, data_world_size=world_size
        )
        return load(batches, run.settings, steps)
    assert dataset.tokenizer is not None
    from training.data.stream import StreamedBatches, stream_steps  # noqa: PLC0415  # pyarrow: only streams need it

    streamed = StreamedBatches(
        run,
        dataset.files,
        dataset.tokenizer,
        collate,
        data_rank=rank,
        data_world_size=world_size,
        first_batch=steps.start * run.settings.gradient_accumulation_steps,
    )
    return stream_steps(streamed, len(steps), run)


def collate_for(run: RunSettings, dataset: TokenDataset) -> Collate:
    return choose_collate(
        run.workload, run.settings, dataset.special_tokens, is_uniform=dataset.is_uniform
    )
