"""Sequences to a batch: a few array operations per batch, not a call per sample."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from training.data.arrays import Array, Mask
from training.data.batch import Batch
from training.data.masking import Masking
from training.data.padding import PadTo
from training.data.sequences import Sequences


class Collate(Protocol):
    def __call__(self, sequences: Sequences, samples: Array, positions: Array) -> Batch:
        """``positions``: where in the run's order each sample stands, for what differs between epochs."""

    def label_counts(self, sequences: Sequences, samples: Array) -> Array | None:
        """How many labels of each sample count in the loss; None if they don't differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollateCausal:
    """Labels are the inputs: the objective shifts them. ``pad_to`` of None: all sequences have one length."""

    pad_to: PadTo | None

    def __call__(self, sequences: Sequences, samples: Array, positions: Array) -> Batch:
        if self.pad_to is None:
            tokens = torch.from_numpy(sequences.block(samples))
            return {"input_ids": tokens, "labels": tokens}
        padded = self.pad_to(sequences, samples)
        labels = np.where(padded.mask, padded.tokens, IGNORED)
        return {**_inputs(padded.tokens, padded.mask), "labels": torch.from_numpy(labels)}

    def label_counts(self, sequences: Sequences, samples: Array) -> Array | None:
        return None if self.pad_to is None else sequences.lengths[samples] - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CollateMasked:
    masking: Masking
    pad_to: PadTo | None

    def __call__(self, sequences: Sequences, samples: Array, positions: Array) -> Batch:
        if self.pad_to is None:
            tokens = sequences.block(samples)
            inputs, labels = self.masking(tokens, None, positions)
            return {"input_ids": torch.from_numpy(inputs), "labels": torch.from_numpy(labels)}
        padded = self.pad_to(sequences, samples)
        inputs, labels = self.masking(padded.tokens, padded.mask, positions)
        return {**_inputs(inputs, padded.mask), "labels": torch.from_numpy(labels)}

    def label_counts(self, sequences: Sequences, samples: Array) -> Array | None:
        return None if self.pad_to is None else self.masking.counts(sequences.lengths[samples])


@dataclass(frozen=True, slots=True, kw_only=True)
class CollateClassified:
    pad_to: PadTo | None

    def __call__(self, sequences: Sequences, samples: Array, positions: Array) -> Batch:
        assert sequences.labels is not None
        labels = torch.from_numpy(sequences.labels[samples])
        if self.pad_to is None:
            return {"input_ids": torch.from_numpy(sequences.block(samples)), "labels": labels}
        padded = self.pad_to(sequences, samples)
        return {**_inputs(padded.tokens, padded.mask), "labels": labels}

    def label_counts(self, sequences: Sequences, samples: Array) -> Array | None:
        return None


IGNORED = -100


def _inputs(tokens: Array, mask: Mask) -> Batch:
    return {"input_ids": torch.from_numpy(tokens), "attention_mask": torch.from_numpy(mask.astype(np.int64))}
