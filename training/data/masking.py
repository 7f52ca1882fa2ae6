"""Masks tokens for masked language modelling. A hash selects them, so that they don't depend on the number of ranks."""

from dataclasses import dataclass

import numpy as np

from training.data.arrays import AnyArray, Array, Mask
from training.models.objective import IGNORED_LABEL

MASKED_SHARE = 0.15
# 80 % of the masked tokens become [MASK], 10 % another token, and 10 % stay as they are.
REPLACED_BY_MASK, REPLACED_BY_ANY = 0.8, 0.9
FRAME_TOKENS = 2  # [CLS] and [SEP] are not masked
GOLDEN_GAMMA = 0x9E3779B97F4A7C15  # SplitMix64's step from one state to the next


@dataclass(frozen=True, slots=True, kw_only=True)
class Masking:
    """Masks the same number of tokens in every sequence of one length, so that ranks have equal weight."""

    seed: int
    mask_token: int
    vocabulary_size: int

    def counts(self, lengths: Array) -> Array:
        """Returns [N], the numbers of masked tokens in sequences of ``lengths`` [N]."""
        text = np.maximum(lengths - FRAME_TOKENS, 1)
        return np.maximum(1, np.rint(MASKED_SHARE * text)).astype(np.int64)

    def __call__(self, tokens: Array, mask: Mask | None, positions: Array) -> tuple[Array, Array]:
        """Returns ``tokens`` [B, L] with the masked ones replaced, and labels [B, L], which count there.

        ``mask`` [B, L] is true for text, and None if nothing is padded. The hash is of ``positions`` [B] in the run's
        order.
        """
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
    """Returns [B, L], true at the ``counts`` [B] places of each row with the least ``draw`` [B, L] between the first
    and the last of its ``lengths`` [B] tokens.
    """
    columns = np.arange(draw.shape[1])
    text = (columns > 0) & (columns < lengths[:, None] - 1)
    ranked = np.where(text, draw, np.iinfo(np.uint64).max)
    bound = np.sort(ranked, axis=1)[np.arange(len(draw)), counts - 1]
    lowest: Mask = (ranked <= bound[:, None]) & text
    return lowest


def _draws(seed: int, positions: Array, width: int) -> AnyArray:
    """A random number for each token of the rows with these ``positions`` [B]: returns [B, L], L is ``width``."""
    start = np.uint64(seed * GOLDEN_GAMMA % (1 << 64))
    rows = _mixed(positions.astype(np.uint64) + start)
    return _mixed(rows[:, None] + np.arange(1, width + 1, dtype=np.uint64))


def _uniform(values: AnyArray) -> AnyArray:
    """Numbers from 0 to 1, made from the random bits of ``values`` [...]."""
    return (values >> np.uint64(11)) / float(1 << 53)


def _mixed(values: AnyArray) -> AnyArray:
    """The finaliser of SplitMix64: each bit of ``values`` [...] changes half of the output's bits."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: AnyArray = values ^ (values >> np.uint64(31))
    return mixed
