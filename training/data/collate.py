"""Sequences to a batch: a few array operations per batch, not a call per sample."""

from dataclasses import dataclass

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase

from traindyno.core.run.settings import Settings
from traindyno.core.run.workload import Workload
from traindyno.core.suite.choices import Padding, Task
from training.data.batch import AnyArray, Array, Batch, Mask
from training.data.sequences import Sequences
from training.errors import WorkloadError
from training.models.objective import IGNORED_LABEL

MASKED_SHARE = 0.15
# 80 % of the masked tokens become [MASK], 10 % another token, and 10 % stay as they are.
REPLACED_BY_MASK = 0.8
REPLACED_BY_ANY = 0.9
FRAME_TOKENS = 2  # [CLS] and [SEP] are not masked
GOLDEN_GAMMA = 0x9E3779B97F4A7C15  # SplitMix64's step from one state to the next
BUCKETS = 8  # the most shapes that a compiler sees


@dataclass(frozen=True, slots=True, kw_only=True)
class Masking:
    """Masks the same number of tokens in every sequence of one length, so that ranks have equal
    weight.
    """

    seed: int
    mask_token: int
    vocabulary_size: int

    def counts(self, lengths: Array) -> Array:
        """Returns [N], the numbers of masked tokens in sequences of ``lengths`` [N]."""
        text = np.maximum(lengths - FRAME_TOKENS, 1)
        return np.maximum(1, np.rint(MASKED_SHARE * text)).astype(np.int64)

    def __call__(self, tokens: Array, mask: Mask | None, positions: Array) -> tuple[Array, Array]:
        """Returns ``tokens`` [B, L] with the masked ones replaced, and labels [B, L], which count
        there.

        ``mask`` [B, L] is true for text, and None if nothing is padded. The hash is of
        ``positions`` [B] in the run's order.
        """
        rows, width = tokens.shape
        of_rows = _mixed(
            positions.astype(np.uint64) + np.uint64(self.seed * GOLDEN_GAMMA % (1 << 64))
        )
        draw = _mixed(
            of_rows[:, None] + np.arange(1, width + 1, dtype=np.uint64)
        )  # a number for each token
        lengths = np.full(rows, width) if mask is None else mask.sum(axis=1)
        chosen = _lowest(draw, lengths, self.counts(lengths))
        labels = np.where(chosen, tokens, IGNORED_LABEL)
        how = (_mixed(draw) >> np.uint64(11)) / float(1 << 53)  # from 0 to 1
        other = (_mixed(draw + np.uint64(1)) % np.uint64(self.vocabulary_size)).astype(np.int64)
        replaced = np.where(
            how < REPLACED_BY_MASK, self.mask_token, np.where(how < REPLACED_BY_ANY, other, tokens)
        )
        return np.where(chosen, replaced, tokens), labels


def _lowest(draw: AnyArray, lengths: Array, counts: Array) -> Mask:
    """Returns [B, L], true at the ``counts`` [B] places of each row with the least ``draw`` [B, L]
    between the first and the last of its ``lengths`` [B] tokens.
    """
    columns = np.arange(draw.shape[1])
    text = (columns > 0) & (columns < lengths[:, None] - 1)
    ranked = np.where(text, draw, np.iinfo(np.uint64).max)
    bound = np.sort(ranked, axis=1)[np.arange(len(draw)), counts - 1]
    lowest: Mask = (ranked <= bound[:, None]) & text
    return lowest


def _mixed(values: AnyArray) -> AnyArray:
    """The finaliser of SplitMix64: each bit of ``values`` [...] changes half of the output's
    bits.
    """
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: AnyArray = values ^ (values >> np.uint64(31))
    return mixed


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

    def __call__(self, sequences: Sequences, samples: Array) -> tuple[Array, Mask]:
        """Returns the tokens [B, L] of ``samples`` [B], and a mask [B, L], which is false for
        padding.
        """
        begins = sequences.begins[samples]
        lengths = sequences.lengths[samples]
        columns = np.arange(self.width(int(lengths.max())))
        mask = columns < lengths[:, None]
        tokens = sequences.tokens.take(
            begins[:, None] + columns, mode="clip"
        )  # what is beyond a sequence is padded
        return np.where(mask, tokens, self.pad_token).astype(np.int64), mask


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialTokens:
    """The special tokens of a vocabulary that batching uses."""

    vocabulary_size: int
    pad: int
    mask: int | None


def special_tokens(tokenizer: PreTrainedTokenizerBase) -> SpecialTokens:
    pad = tokenizer.pad_token_id
    return SpecialTokens(
        vocabulary_size=len(tokenizer),
        pad=0 if pad is None else pad,
        mask=tokenizer.mask_token_id,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Collate:
    """Makes batches of sequences."""

    task: Task
    #: None if all sequences have one length.
    pad_to: PadTo | None
    #: None but for a masked language model.
    masking: Masking | None = None
    #: Whether positions begin again with each document of a sequence.
    has_positions: bool = False

    def __call__(self, sequences: Sequences, samples: Array, positions: Array) -> Batch:
        """The batch of ``samples`` [B].

        Masks, which differ between epochs, depend on ``positions`` [B] in the run's order.
        """
        mask: Mask | None = None
        if self.pad_to is None:
            tokens = sequences.block(samples)
        else:
            tokens, mask = self.pad_to(sequences, samples)
        inputs = labels = tokens  # a causal model's, which the objective shifts
        if self.masking is not None:
            inputs, labels = self.masking(tokens, mask, positions)
        elif self.task is Task.SEQUENCE_CLASSIFICATION:
            assert sequences.labels is not None
            labels = sequences.labels[samples]
        elif sequences.loss_mask is not None:
            counted = sequences.counted(samples, tokens.shape[1])
            labels = np.where(counted, tokens, IGNORED_LABEL)
        elif mask is not None:
            labels = np.where(mask, tokens, IGNORED_LABEL)
        batch = {"input_ids": torch.from_numpy(inputs)}
        if mask is not None:
            batch["attention_mask"] = torch.from_numpy(mask.astype(np.int64))
        batch["labels"] = batch["input_ids"] if labels is inputs else torch.from_numpy(labels)
        if self.has_positions:
            positions = sequences.positions(samples, tokens.shape[1])
            batch["position_ids"] = torch.from_numpy(positions)
        return batch

    def label_counts(self, sequences: Sequences, samples: Array) -> Array | None:
        """Returns [N], how many labels of each of ``samples`` [N] count in the loss; None if all
        have equally many.
        """
        lengths = sequences.lengths[samples]
        if sequences.loss_mask is not None:
            counts: Array = sequences.counted(samples, int(lengths.max())).sum(axis=1)
            return counts
        if self.pad_to is None or self.task is Task.SEQUENCE_CLASSIFICATION:
            return None
        return lengths - 1 if self.masking is None else self.masking.counts(lengths)


def choose_collate(
    workload: Workload, settings: Settings, special: SpecialTokens, *, is_uniform: bool
) -> Collate:
    """The collate function of the run.

    Nothing is padded if the sequences are uniform, that is, if all have the workload's length.
    """
    assert workload.sequence_length is not None
    masking = None
    if workload.task is Task.MASKED_LM:
        if special.mask is None:
            raise WorkloadError(
                "the tokenizer has no mask token; expected one of a masked language model"
            )
        masking = Masking(
            seed=settings.seed, mask_token=special.mask, vocabulary_size=special.vocabulary_size
        )
    padded = PadTo(
        padding=settings.padding, sequence_length=workload.sequence_length, pad_token=special.pad
    )
    return Collate(
        task=workload.task,
        pad_to=None if is_uniform else padded,
        masking=masking,
        has_positions=workload.task is Task.CAUSAL_LM and settings.document_masking,
    )
