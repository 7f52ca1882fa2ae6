"""The batches of this rank for each step, made in this process or in advance by workers."""

import signal
from collections.abc import Iterator
from typing import TypeVar

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from traindyno.core.run.settings import Settings
from traindyno.core.suite.choices import Padding
from training.data.batch import Array, Batch
from training.data.collate import Collate
from training.data.sequences import Sequences

STEPS_PER_WINDOW = 64

Made = TypeVar("Made")


class SeededOrder:
    """An endless sequence of epochs, each a permutation of all samples.

    A step may contain samples of two epochs.
    """

    def __init__(self, sample_count: int, samples_per_step: int, seed: int) -> None:
        self._sample_count = sample_count
        self._samples_per_step = samples_per_step
        self._seed = seed
        self._epoch = -1
        self._permutation: Array

    def step(self, step: int) -> Array:
        """Returns [S], the samples of a step: of all ranks and accumulated batches together."""
        return self.samples(step * self._samples_per_step, self._samples_per_step)

    def samples(self, begin: int, count: int) -> Array:
        """Returns [N], ``count`` samples from place ``begin`` of the endless sequence on."""
        parts = []
        while count > 0:
            epoch, position = divmod(begin, self._sample_count)
            if epoch != self._epoch:
                self._epoch = epoch
                self._permutation = np.random.default_rng((self._seed, epoch)).permutation(
                    self._sample_count
                )
            part = self._permutation[position : position + count]
            parts.append(part)
            begin = begin + len(part)
            count = count - len(part)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


class BucketedOrder:
    """An order of samples in which a step has sequences of similar length.

    Samples change places within a window of steps, whose order stays random. A window ends with
    its epoch, so that each epoch has each sample once. A step with samples of two epochs stays as
    it is. ``lengths`` [N] has the length of each sample.
    """

    def __init__(
        self, order: SeededOrder, lengths: Array, samples_per_step: int, seed: int
    ) -> None:
        self._order = order
        self._lengths = lengths
        self._samples_per_step = samples_per_step
        self._seed = seed
        self._window = (-1, -1)
        self._steps: Array

    def step(self, step: int) -> Array:
        begin, end = self._window_of(step)
        if end - begin == 1:
            return self._order.step(step)
        if (begin, end) != self._window:
            of_window = self._order.samples(
                begin * self._samples_per_step, (end - begin) * self._samples_per_step
            )
            by_length = of_window[np.argsort(self._lengths[of_window], kind="stable")]
            steps = by_length.reshape(end - begin, self._samples_per_step)
            shuffled = np.random.default_rng((self._seed, begin)).permutation(end - begin)
            self._window = (begin, end)
            self._steps = steps[shuffled]
        samples: Array = self._steps[step - begin]
        return samples

    def _window_of(self, step: int) -> tuple[int, int]:
        """Returns the first step of the window that ``step`` is in, and the first one after the
        window.
        """
        size = self._samples_per_step
        count = len(self._lengths)
        epoch = step * size // count
        # the steps within the epoch
        first = -(-epoch * count // size)
        after = (epoch + 1) * count // size
        if step >= after:
            return step, step + 1
        begin = first + (step - first) // STEPS_PER_WINDOW * STEPS_PER_WINDOW
        return begin, min(begin + STEPS_PER_WINDOW, after)


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
        batches = [
            self._collate(self._sequences, *part) for part in zip(samples, positions, strict=True)
        ]
        counts = self._collate.label_counts(self._sequences, whole)
        if counts is not None:
            weights = (
                self._share(counts).sum(axis=1) * (len(batches) * self._shape[2]) / counts.sum()
            )
            for batch, weight in zip(batches, weights, strict=True):
                batch["weight"] = torch.tensor(weight, dtype=torch.float32)
        return batches

    def _share(self, values: Array) -> Array:
        """Returns this rank's part [A, B] of ``values`` [S]: every n-th, so that ranks get similar
        lengths in a step that is sorted by length.
        """
        return values.reshape(self._shape)[:, :, self._data_rank]


def _order(
    sequences: Sequences, settings: Settings, samples_per_step: int
) -> SeededOrder | BucketedOrder:
    order = SeededOrder(len(sequences), samples_per_step, settings.seed)
    if settings.padding is not Padding.BUCKET or sequences.uniform_length is not None:
        return order
    return BucketedOrder(order, sequences.lengths, samples_per_step, settings.seed)


def load(batches: Dataset[Made], settings: Settings, steps: range | None = None) -> Iterator[Made]:
    """What ``batches`` gives: for each of ``steps``, which count from 0, or as it iterates
    itself.
    """
    loader = DataLoader(
        batches,
        batch_size=None,
        sampler=steps,
        num_workers=settings.loader_workers,
        pin_memory=settings.pin_memory and torch.cuda.is_available(),
        # It draws a number when it starts. From the run's generator, this number would differ in a
        # resumed run.
        generator=torch.Generator(),
        worker_init_fn=_ignore_sigterm,
    )
    return iter(loader)


def _ignore_sigterm(_worker: int) -> None:
    """A worker ends with its process, which writes a checkpoint before; both receive the signal."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
