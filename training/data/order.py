"""Which samples a step reads: a seeded order, the same on every rank, whatever the number of ranks."""

from typing import Protocol

import numpy as np

from training.data.arrays import Array

STEPS_PER_WINDOW = 64


class Order(Protocol):
    def step(self, step: int) -> Array:
        """The samples of a step, all ranks and accumulated batches together."""


class SeededOrder:
    """An endless row of epochs, each with a permutation of all samples; a step may straddle two, so none is short."""

    def __init__(self, sample_count: int, samples_per_step: int, seed: int) -> None:
        self._sample_count = sample_count
        self._samples_per_step = samples_per_step
        self._seed = seed
        self._epoch = -1
        self._permutation: Array

    def step(self, step: int) -> Array:
        return self.samples(step * self._samples_per_step, self._samples_per_step)

    def samples(self, begin: int, count: int) -> Array:
        parts = []
        while count > 0:
            epoch, position = divmod(begin, self._sample_count)
            part = self._of_epoch(epoch)[position : position + count]
            parts.append(part)
            begin, count = begin + len(part), count - len(part)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _of_epoch(self, epoch: int) -> Array:
        if epoch != self._epoch:
            self._epoch = epoch
            self._permutation = np.random.default_rng((self._seed, epoch)).permutation(self._sample_count)
        return self._permutation


class BucketedOrder:
    """Within a window of steps, sequences of like length come into one step; the steps' order stays random."""

    def __init__(self, order: SeededOrder, lengths: Array, samples_per_step: int, seed: int) -> None:
        self._order = order
        self._lengths = lengths
        self._samples_per_step = samples_per_step
        self._seed = seed
        self._window = -1
        self._steps: Array

    def step(self, step: int) -> Array:
        window, number = divmod(step, STEPS_PER_WINDOW)
        if window != self._window:
            self._window, self._steps = window, self._of_window(window)
        samples: Array = self._steps[number]
        return samples

    def _of_window(self, window: int) -> Array:
        count = STEPS_PER_WINDOW * self._samples_per_step
        samples = self._order.samples(window * count, count)
        by_length = samples[np.argsort(self._lengths[samples], kind="stable")]
        steps = by_length.reshape(STEPS_PER_WINDOW, self._samples_per_step)
        return steps[np.random.default_rng((self._seed, window)).permutation(STEPS_PER_WINDOW)]
