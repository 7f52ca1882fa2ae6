"""The part of a run that is measured: from sequences on disk to trained weights."""

from collections.abc import Callable, Iterator
from math import ceil

from traindyno.callbacks import StepLogger
from traindyno.core.suite.processes import global_batch_size, scaled_learning_rate
from training.data.batch import Batch
from training.data.choose_collate import choose_collate
from training.data.collate import Collate
from training.data.dataset import TokenDataset
from training.data.loader import StepBatches, load_steps
from training.data.stream import StreamedBatches, stream_steps
from training.loop import run_steps
from training.optimizer import build_optimizer
from training.run_settings import RunSettings
from training.strategies import Setup, Strategy


def train(
    run: RunSettings,
    setup: Setup,
    strategy: Strategy,
    dataset: TokenDataset,
    *,
    step_log: StepLogger,
    should_stop: Callable[[StepLogger], bool],
) -> None:
    settings = run.settings
    samples_per_step = global_batch_size(settings, setup.topology.world_size)
    learning_rate = scaled_learning_rate(settings.learning_rate, samples_per_step)
    optimizer = strategy.build_optimizer(lambda parameters: build_optimizer(parameters, settings, learning_rate))
    step_count = min(run.measurement.max_steps, ceil(run.workload.examples / samples_per_step))
    run_steps(
        _batches(run, strategy, dataset, step_count),
        setup=setup,
        strategy=strategy,
        optimizer=optimizer,
        step_log=step_log,
        should_stop=should_stop,
    )


def _batches(run: RunSettings, strategy: Strategy, dataset: TokenDataset, step_count: int) -> Iterator[list[Batch]]:
    collate = collate_for(run, dataset)
    rank, world_size = strategy.data_rank, strategy.data_world_size
    if dataset.train is not None:
        batches = StepBatches(dataset.train, collate, run.settings, data_rank=rank, data_world_size=world_size)
        return load_steps(batches, step_count, run.settings)
    assert dataset.tokenizer is not None
    streamed = StreamedBatches(
        run, dataset.files, dataset.tokenizer, collate, data_rank=rank, data_world_size=world_size
    )
    return stream_steps(streamed, step_count, run)


def collate_for(run: RunSettings, dataset: TokenDataset) -> Collate:
    return choose_collate(run.workload, run.settings, dataset.special_tokens, is_uniform=dataset.is_uniform)
