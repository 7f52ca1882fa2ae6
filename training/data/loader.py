"""Step after step the batches that this rank reads, made in this process or ahead of it by workers."""

from collections.abc import Iterator

import torch
from torch.utils.data import DataLoader, Dataset

from traindyno.core.suite import Settings
from training.data.batch import Batch
from training.data.collate import Collate
from training.data.order import SeededOrder
from training.data.sequences import Sequences


class StepBatches(Dataset[list[Batch]]):
    """Item n is the list of accumulated batches of step n: this rank's slice of each global batch."""

    def __init__(
        self,
        sequences: Sequences,
        collate: Collate,
        settings: Settings,
        *,
        data_rank: int,
        data_world_size: int,
    ) -> None:
        self._sequences = sequences
        self._collate = collate
        self._order = SeededOrder(len(sequences), settings.seed)
        self._batch_size = settings.batch_size_per_device
        self._accumulation = settings.gradient_accumulation_steps
        self._data_rank = data_rank
        self._data_world_size = data_world_size

    def __getitem__(self, step: int) -> list[Batch]:
        return [self._batch(step * self._accumulation + number) for number in range(self._accumulation)]

    def _batch(self, number: int) -> Batch:
        begin = (number * self._data_world_size + self._data_rank) * self._batch_size
        samples = self._order.samples(begin, self._batch_size)
        return self._collate(self._sequences, samples, begin)


def load_steps(batches: StepBatches, step_count: int, settings: Settings) -> Iterator[list[Batch]]:
    if settings.loader_workers == 0:
        return _in_this_process(batches, step_count, pin_memory=settings.pin_memory)
    return iter(
        DataLoader(
            batches,
            batch_size=None,
            sampler=range(step_count),
            num_workers=settings.loader_workers,
            prefetch_factor=settings.prefetch_factor,
            pin_memory=settings.pin_memory and torch.cuda.is_available(),
        )
    )


def _in_this_process(batches: StepBatches, step_count: int, *, pin_memory: bool) -> Iterator[list[Batch]]:
    pins = pin_memory and torch.cuda.is_available()
    for step in range(step_count):
        made = batches[step]
        yield [{name: tensor.pin_memory() for name, tensor in batch.items()} for batch in made] if pins else made
