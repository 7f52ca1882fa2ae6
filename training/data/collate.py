"""Sequences to a batch: a few array operations per batch, not a call per sample."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase

from traindyno.core.suite.choices import Task
from traindyno.core.suite.settings import Settings
from traindyno.core.suite.workload import Workload
from training.data.arrays import Array, Mask
from training.data.batch import Batch
from training.data.masking import Masking
from training.data.padding import PadTo
from training.data.sequences import Sequences
from training.errors import WorkloadError
from training.models.model_config import end_token
from training.models.objective import IGNORED_LABEL


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialTokens:
    """The special tokens of a vocabulary that batching uses. ``end`` follows each document in packed sequences."""

    vocabulary_size: int
    pad: int
    mask: int | None
    end: int | None


def special_tokens(tokenizer: PreTrainedTokenizerBase) -> SpecialTokens:
    pad = tokenizer.pad_token_id
    return SpecialTokens(
        vocabulary_size=len(tokenizer),
        pad=0 if pad is None else pad,
        mask=tokenizer.mask_token_id,
        end=end_token(tokenizer),
    )


class Collate(Protocol):
    def __call__(self, sequences: Sequences, samples: Array, positions: Array) -> Batch:
        """The batch of ``samples`` [B]. What differs between epochs depends on ``positions`` [B] in the run's order."""

    def label_counts(self, sequences: Sequences, samples: Array) -> Array | None:
        """Returns [N], how many labels of each of ``samples`` [N] count in the loss; None if all have equally many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollateCausal:
    """The labels are the inputs, which the objective shifts. ``pad_to`` is None if all sequences have one length.

    ``document_end``: the token after which positions begin again; None if they count through.
    """

    pad_to: PadTo | None
    document_end: int | None = None

    def __call__(self, sequences: Sequences, samples: Array, positions: Array) -> Batch:
        if self.pad_to is None:
            block = sequences.block(samples)
            tokens = torch.from_numpy(block)
            batch = {"input_ids": tokens, "labels": tokens}
            if self.document_end is not None:
                batch["position_ids"] = torch.from_numpy(positions_in_documents(block, self.document_end))
            return batch
        padded = self.pad_to(sequences, samples)
        labels = np.where(padded.mask, padded.tokens, IGNORED_LABEL)
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


def positions_in_documents(tokens: Array, end: int) -> Array:
    """Returns [B, L]: the position of each of ``tokens`` [B, L] in its document, which ends with the token ``end``."""
    columns = np.broadcast_to(np.arange(tokens.shape[1]), tokens.shape)
    begins = np.zeros(tokens.shape, dtype=np.int64)
    begins[:, 1:] = np.where(tokens[:, :-1] == end, columns[:, 1:], 0)
    return columns - np.maximum.accumulate(begins, axis=1)


def _inputs(tokens: Array, mask: Mask) -> Batch:
    """Takes ``tokens`` [B, L] and ``mask`` [B, L]."""
    return {"input_ids": torch.from_numpy(tokens), "attention_mask": torch.from_numpy(mask.astype(np.int64))}


def choose_collate(workload: Workload, settings: Settings, special: SpecialTokens, *, is_uniform: bool) -> Collate:
    """With ``is_uniform``, all sequences have the workload's length, so that nothing is padded."""
    assert workload.sequence_length is not None
    padded = PadTo(padding=settings.padding, sequence_length=workload.sequence_length, pad_token=special.pad)
    pad_to = None if is_uniform else padded
    match workload.task:
        case Task.CAUSAL_LM:
            if settings.document_masking and special.end is None:
                raise WorkloadError("the tokenizer has no end token; expected one for document_masking")
            return CollateCausal(pad_to=pad_to, document_end=special.end if settings.document_masking else None)
        case Task.MASKED_LM:
            if special.mask is None:
                raise WorkloadError("the tokenizer has no mask token; expected one of a masked language model")
            masking = Masking(seed=settings.seed, mask_token=special.mask, vocabulary_size=special.vocabulary_size)
            return CollateMasked(masking=masking, pad_to=pad_to)
        case _:
            return CollateClassified(pad_to=pad_to)
