"""A synthetic dataset that a model can learn, the same on every machine."""

import numpy as np

from traindyno.core.suite.choices import Task
from traindyno.core.suite.workload import Workload
from training.data.arrays import Array
from training.data.collate import SpecialTokens
from training.data.sequences import Sequences, end_to_end, token_type

MOST_SEQUENCES = 4096  # then the epochs repeat
PAD, MASK, FIRST_ORDINARY = 0, 1, 4
NOISE = 0.1
SEED = 20261121


def synthetic_tokens(vocabulary_size: int) -> SpecialTokens:
    return SpecialTokens(vocabulary_size=vocabulary_size, pad=PAD, mask=MASK, end=PAD)


def synthetic_sequences(workload: Workload, vocabulary_size: int) -> Sequences:
    assert workload.sequence_length is not None
    count, length = min(workload.examples, MOST_SEQUENCES), workload.sequence_length
    random = np.random.default_rng(SEED)
    tokens = _chains(random, count, length, vocabulary_size)
    if workload.task is not Task.SEQUENCE_CLASSIFICATION:
        return end_to_end(tokens.reshape(-1).astype(token_type(vocabulary_size)), np.full(count, length))
    label_count = workload.label_count or 2
    labels = random.integers(label_count, size=count)
    tokens[:, 1:3] = (FIRST_ORDINARY + labels)[:, None]
    return _shortened(random, tokens, labels, vocabulary_size)


def _chains(random: np.random.Generator, count: int, length: int, vocabulary_size: int) -> Array:
    """Returns [N, L] tokens. Each follows from the one before by a fixed rule, except for some noise."""
    ordinary = vocabulary_size - FIRST_ORDINARY
    tokens = random.integers(ordinary, size=(count, length))
    noisy = random.random((count, length)) < NOISE
    for column in range(1, length):
        follows = (tokens[:, column - 1] * 7 + 3) % ordinary
        tokens[:, column] = np.where(noisy[:, column], tokens[:, column], follows)
    return tokens + FIRST_ORDINARY


def _shortened(random: np.random.Generator, tokens: Array, labels: Array, vocabulary_size: int) -> Sequences:
    """Cuts ``tokens`` [N, L] with ``labels`` [N] to lengths from a quarter of the longest on, as real text has them."""
    count, length = tokens.shape
    lengths = random.integers(max(3, length // 4), length + 1, size=count)
    kept = np.arange(length) < lengths[:, None]
    return end_to_end(tokens[kept].astype(token_type(vocabulary_size)), lengths, labels)
