"""Sequences to a batch: one array operation per batch, not a call per sample."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from training.data.batch import Batch
from training.data.order import Indices
from training.data.sequences import Sequences

Array = npt.NDArray[np.int64]


class Collate(Protocol):
    def __call__(self, sequences: Sequences, samples: Indices, begin: int) -> Batch:
        """``begin`` is the position of the batch's first sample in the order, for what depends on the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollatePackedCausal:
    """Equal lengths: labels are the inputs, the objective shifts them."""

    sequence_length: int

    def __call__(self, sequences: Sequences, samples: Indices, begin: int) -> Batch:
        tokens = torch.from_numpy(block_of(sequences, samples, self.sequence_length))
        return {"input_ids": tokens, "labels": tokens}


def block_of(sequences: Sequences, samples: Indices, sequence_length: int) -> Array:
    return sequences.tokens.reshape(-1, sequence_length)[samples].astype(np.int64)
