"""Which samples a step reads: a seeded order, the same on every rank, whatever the number of ranks."""

from typing import Protocol

import numpy as np

from training.data.arrays import Array

STEPS_PER_WINDOW = 64


class Order(Protocol):
    def step(self, step: int) -> Array:
        """Returns [S], the samples of a step: of all ranks and accumulated batches together."""


class SeededOrder:
    """An endless sequence of epochs, each a permutation of all samples. A step may contain samples of two epochs."""

    def __init__(self, sample_count: int, samples_per_step: int, seed: int) -> None:
        self._sample_count = sample_count
        self._samples_per_step = samples_per_step
        self._seed = seed
        self._epoch = -1
        self._permutation: Array

    def step(self, step: int) -> Array:
        return self.samples(step * self._samples_per_step, self._samples_per_step)

    def samples(self, begin: int, count: int) -> Array:
        """Returns [N], ``count`` samples from place ``begin`` of the endless sequence on."""
        parts = []
        while count > 0:
            epoch, position = divmod(begin, self._sample_count)
            part = self._of_epoch(epoch)[position : position + count]
            parts.append(part)
            begin, count = begin + len(part), count - len(part)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _of_epoch(self, epoch: int) -> Array:
        """Returns [N], all samples in the order of this epoch."""
        if epoch != self._epoch:
            self._epoch = epoch
            self._permutation = np.random.default_rng((self._seed, epoch)).permutation(self._sample_count)
        return self._permutation


class BucketedOrder:
    """Within a window of steps, sequences of similar length are in one step; the steps' order stays random.

    A window ends with its epoch, so that each epoch has each sample once. A step with samples of two epochs stays as it
    is. ``lengths`` [N] are those of all samples.
    """

    def __init__(self, order: SeededOrder, lengths: Array, samples_per_step: int, seed: int) -> None:
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
            self._window, self._steps = (begin, end), self._sorted(begin, end)
        samples: Array = self._steps[step - begin]
        return samples

    def _window_of(self, step: int) -> tuple[int, int]:
        """Returns the first step of the window that ``step`` is in, and the first one after the window."""
        size, count = self._samples_per_step, len(self._lengths)
        epoch = step * size // count
        first, after = -(-epoch * count // size), (epoch + 1) * count // size  # the steps within the epoch
        if step >= after:
            return step, step + 1
        begin = first + (step - first) // STEPS_PER_WINDOW * STEPS_PER_WINDOW
        return begin, min(begin + STEPS_PER_WINDOW, after)

    def _sorted(self, begin: int, end: int) -> Array:
        """Returns [N, S], the samples of the steps of a window."""
        samples = self._order.samples(begin * self._samples_per_step, (end - begin) * self._samples_per_step)
        by_length = samples[np.argsort(self._lengths[samples], kind="stable")]
        steps = by_length.reshape(end - begin, self._samples_per_step)
        return steps[np.random.default_rng((self._seed, begin)).permutation(end - begin)]
