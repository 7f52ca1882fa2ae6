"""Masked language modelling: a hash selects the masked tokens, so that they don't depend on the number of ranks."""

from dataclasses import dataclass

import numpy as np

from training.data.arrays import AnyArray, Array, Mask
from training.models.objective import IGNORED_LABEL

MASKED_SHARE = 0.15
REPLACED_BY_MASK, REPLACED_BY_ANY = 0.8, 0.9  # of the masked: 80 % [MASK], 10 % another token, 10 % as they are
FRAME_TOKENS = 2  # [CLS] and [SEP] are not masked
GOLDEN_GAMMA = 0x9E3779B97F4A7C15  # SplitMix64's step from one state to the next


@dataclass(frozen=True, slots=True, kw_only=True)
class Masking:
    """Masks the same number of tokens in every sequence of one length, so that ranks have equal weight."""

    seed: int
    mask_token: int
    vocabulary_size: int

    def counts(self, lengths: Array) -> Array:
        text = np.maximum(lengths - FRAME_TOKENS, 1)
        return np.maximum(1, np.rint(MASKED_SHARE * text)).astype(np.int64)

    def __call__(self, tokens: Array, mask: Mask | None, positions: Array) -> tuple[Array, Array]:
        """Inputs with tokens replaced, and labels that count only there."""
        rows, width = tokens.shape
        draw = _draws(self.seed, positions, width)
        lengths = np.full(rows, width) if mask is None else mask.sum(axis=1)
        chosen = _lowest(draw, lengths, self.counts(lengths))
        labels = np.where(chosen, tokens, IGNORED_LABEL)
        how = _uniform(_mixed(draw))
        other = (_mixed(draw + np.uint64(1)) % np.uint64(self.vocabulary_size)).astype(np.int64)
        replaced = np.where(how < REPLACED_BY_MASK, self.mask_token, np.where(how < REPLACED_BY_ANY, other, tokens))
        return np.where(chosen, replaced, tokens), labels


def _lowest(draw: AnyArray, lengths: Array, counts: Array) -> Mask:
    """In each row the ``counts`` places of least draw between the first and the last token."""
    columns = np.arange(draw.shape[1])
    text = (columns > 0) & (columns < lengths[:, None] - 1)
    ranked = np.where(text, draw, np.iinfo(np.uint64).max)
    bound = np.sort(ranked, axis=1)[np.arange(len(draw)), counts - 1]
    lowest: Mask = (ranked <= bound[:, None]) & text
    return lowest


def _draws(seed: int, positions: Array, width: int) -> AnyArray:
    start = np.uint64(seed * GOLDEN_GAMMA % (1 << 64))
    rows = _mixed(positions.astype(np.uint64) + start)
    return _mixed(rows[:, None] + np.arange(1, width + 1, dtype=np.uint64))


def _uniform(values: AnyArray) -> AnyArray:
    return (values >> np.uint64(11)) / float(1 << 53)


def _mixed(values: AnyArray) -> AnyArray:
    """The finaliser of SplitMix64: every bit of the input moves half of the output's."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: AnyArray = values ^ (values >> np.uint64(31))
    return mixed
