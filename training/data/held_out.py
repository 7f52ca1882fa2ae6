"""Holds out a random part of the training sequences to evaluate on, if the suite names no split for it."""

import numpy as np

from traindyno.core.suite.preparation import MOST_HELD_OUT
from training.data.arrays import Array
from training.data.sequences import Sequences
from training.errors import WorkloadError

SHARE = 0.05


def hold_out(sequences: Sequences, seed: int) -> tuple[Sequences, Sequences]:
    """Returns the sequences to train on and those to evaluate on, in their order. With labels, each class keeps its
    proportion. Raises WorkloadError if there are too few sequences.
    """
    count = min(MOST_HELD_OUT, int(len(sequences) * SHARE))
    if count == 0:
        raise WorkloadError(
            f"the dataset gives {len(sequences)} sequences, too few to hold some out for evaluation; expected an "
            f"evaluation_split, or {int(1 / SHARE)} sequences"
        )
    random = np.random.default_rng((seed, len(sequences)))
    chosen = np.zeros(len(sequences), dtype=bool)
    chosen[_drawn(random, sequences, count)] = True
    return sequences.select(np.flatnonzero(~chosen)), sequences.select(np.flatnonzero(chosen))


def _drawn(random: np.random.Generator, sequences: Sequences, count: int) -> Array:
    """Returns [N], the numbers of ``count`` sequences.

    Sequences are sorted by class, in a random order within each, and every n-th is drawn: each class is drawn in its
    proportion, to within one sequence.
    """
    order: Array = random.permutation(len(sequences))
    if sequences.labels is not None:
        order = order[np.argsort(sequences.labels[order], kind="stable")]
    places = np.linspace(0, len(order), count, endpoint=False) + random.uniform(0, len(order) / count)
    return order[places.astype(np.int64)]
