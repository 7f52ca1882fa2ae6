"""Pads sequences of unequal length to one width: the longest allowed, the batch's longest, or a bucket's."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from traindyno.core.suite.choices import Padding
from training.data.arrays import Array, Mask
from training.data.sequences import Sequences

BUCKETS = 8  # the most shapes that a compiler sees


class Padded(NamedTuple):
    """Has ``tokens`` [B, L] and ``mask`` [B, L], which is true for tokens of a sequence and false for padding."""

    tokens: Array
    mask: Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class PadTo:
    padding: Padding
    sequence_length: int
    pad_token: int

    def width(self, longest: int) -> int:
        match self.padding:
            case Padding.MAX_LENGTH:
                return self.sequence_length
            case Padding.LONGEST:
                return longest
            case Padding.BUCKET:
                bucket = max(1, self.sequence_length // BUCKETS)
                return min(self.sequence_length, -(-longest // bucket) * bucket)

    def __call__(self, sequences: Sequences, samples: Array) -> Padded:
        """Takes ``samples`` [B]."""
        begins, lengths = sequences.begins[samples], sequences.lengths[samples]
        columns = np.arange(self.width(int(lengths.max())))
        mask = columns < lengths[:, None]
        tokens = sequences.tokens.take(begins[:, None] + columns, mode="clip")  # what is beyond a sequence is padded
        return Padded(np.where(mask, tokens, self.pad_token).astype(np.int64), mask)
