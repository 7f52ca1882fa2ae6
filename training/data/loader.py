"""The batches of this rank for each step, made in this process or in advance by workers."""

import signal
from collections.abc import Iterator

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from traindyno.core.suite.choices import Padding
from traindyno.core.suite.settings import Settings
from training.data.arrays import Array
from training.data.batch import Batch
from training.data.collate import Collate
from training.data.order import BucketedOrder, Order, SeededOrder
from training.data.sequences import Sequences


class StepBatches(Dataset[list[Batch]]):
    """Item n is the list of accumulated batches of step n: this rank's share of each."""

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
        self._data_rank = data_rank
        self._shape = (settings.gradient_accumulation_steps, settings.batch_size, data_world_size)
        self._samples_per_step = int(np.prod(self._shape))
        self._order = _order(sequences, settings, self._samples_per_step)

    def __getitem__(self, step: int) -> list[Batch]:
        whole = self._order.step(step)
        samples = self._share(whole)
        first = step * self._samples_per_step
        positions = self._share(np.arange(first, first + self._samples_per_step))
        batches = [self._collate(self._sequences, *part) for part in zip(samples, positions, strict=True)]
        counts = self._collate.label_counts(self._sequences, whole)
        if counts is not None:
            weights = self._share(counts).sum(axis=1) * (len(batches) * self._shape[2]) / counts.sum()
            for batch, weight in zip(batches, weights, strict=True):
                batch["weight"] = torch.tensor(weight, dtype=torch.float32)
        return batches

    def _share(self, values: Array) -> Array:
        """Returns this rank's part [A, B] of ``values`` [S]: every n-th, so that ranks get similar lengths in a step
        that is sorted by length.
        """
        return values.reshape(self._shape)[:, :, self._data_rank]


def _order(sequences: Sequences, settings: Settings, samples_per_step: int) -> Order:
    order = SeededOrder(len(sequences), samples_per_step, settings.seed)
    if settings.padding is not Padding.BUCKET or sequences.uniform_length is not None:
        return order
    return BucketedOrder(order, sequences.lengths, samples_per_step, settings.seed)


def load_steps(batches: StepBatches, steps: range, settings: Settings) -> Iterator[list[Batch]]:
    """The batches of ``steps``, which count from 0; a resumed run begins with a later one."""
    pins = settings.pin_memory and torch.cuda.is_available()
    if settings.loader_workers == 0:
        return _in_this_process(batches, steps, pins=pins)
    loader = DataLoader(
        batches,
        batch_size=None,
        sampler=steps,
        num_workers=settings.loader_workers,
        pin_memory=pins,
        generator=own_generator(),
        worker_init_fn=ignore_sigterm,
    )
    return iter(loader)


def own_generator() -> torch.Generator:
    """A loader draws a number when it starts. From the run's generator, this number would differ in a resumed run."""
    return torch.Generator()


def ignore_sigterm(_worker: int) -> None:
    """A worker ends with its process, which writes a checkpoint before; both receive the signal."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _in_this_process(batches: StepBatches, steps: range, *, pins: bool) -> Iterator[list[Batch]]:
    for step in steps:
        made = batches[step]
        yield [{name: tensor.pin_memory() for name, tensor in batch.items()} for batch in made] if pins else made
