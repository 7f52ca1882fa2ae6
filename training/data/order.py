"""Which samples a step reads: a seeded order, the same on every rank, whatever the number of ranks."""

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int64]


class SeededOrder:
    """An endless row of epochs, each a permutation of all samples of its own."""

    def __init__(self, sample_count: int, seed: int) -> None:
        self._sample_count = sample_count
        self._seed = seed
        self._epoch = -1
        self._permutation: Indices

    def samples(self, begin: int, count: int) -> Indices:
        """Positions ``begin`` to ``begin + count`` of the row; a batch may straddle epochs, so that none is short."""
        parts = []
        while count > 0:
            epoch, position = divmod(begin, self._sample_count)
            part = self._of_epoch(epoch)[position : position + count]
            parts.append(part)
            begin, count = begin + len(part), count - len(part)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _of_epoch(self, epoch: int) -> Indices:
        if epoch != self._epoch:
            self._epoch = epoch
            self._permutation = np.random.default_rng((self._seed, epoch)).permutation(self._sample_count)
        return self._permutation
