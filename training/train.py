"""The part of a run that is measured: from sequences on disk to trained weights."""

from collections.abc import Callable
from math import ceil

from traindyno.callbacks import StepLog
from training.data.choose_collate import choose_collate
from training.data.collate import Collate
from training.data.dataset import TokenDataset
from training.data.loader import StepBatches, load_steps
from training.data.sequences import Sequences
from training.loop import run_steps
from training.optimizer import build_optimizer, scaled_learning_rate
from training.run_settings import RunSettings
from training.strategies import Setup, Strategy


def train(
    run: RunSettings,
    setup: Setup,
    strategy: Strategy,
    dataset: TokenDataset,
    *,
    step_log: StepLog,
    should_stop: Callable[[StepLog], bool],
) -> None:
    settings = run.settings
    samples_per_step = settings.batch_size_per_device * settings.gradient_accumulation_steps * strategy.data_world_size
    learning_rate = scaled_learning_rate(settings, samples_per_step)
    optimizer = strategy.build_optimizer(lambda parameters: build_optimizer(parameters, settings, learning_rate))
    batches = StepBatches(
        dataset.train,
        collate_for(run, dataset, dataset.train),
        settings,
        data_rank=strategy.data_rank,
        data_world_size=strategy.data_world_size,
    )
    step_count = min(run.measurement.max_steps, ceil(run.workload.examples / samples_per_step))
    run_steps(
        load_steps(batches, step_count, settings),
        setup=setup,
        strategy=strategy,
        optimizer=optimizer,
        step_log=step_log,
        should_stop=should_stop,
    )


def collate_for(run: RunSettings, dataset: TokenDataset, sequences: Sequences) -> Collate:
    return choose_collate(run.workload, run.settings, dataset.special_tokens, is_uniform=is_uniform(run, sequences))


def is_uniform(run: RunSettings, sequences: Sequences) -> bool:
    return sequences.uniform_length == run.workload.sequence_length
