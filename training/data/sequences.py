"""Token sequences on disk: one flat array with offsets, read by every process of a host without copying."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from training.data.arrays import AnyArray, Array

MANIFEST = "traindyno-data.json"
# The parts of a folder of tokens
TRAIN, EVALUATION, TOKENIZER = "train", "evaluation", "tokenizer"


@dataclass(frozen=True, kw_only=True)
class Sequences:
    """``offsets`` has one entry more than there are sequences; ``labels`` has one per sequence or is None."""

    tokens: AnyArray
    offsets: Array
    labels: Array | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def lengths(self) -> Array:
        lengths: Array = np.diff(self.offsets)
        return lengths

    @cached_property
    def uniform_length(self) -> int | None:
        """The length that all sequences have, or None."""
        first = int(self.lengths[0])
        return first if (self.lengths == first).all() else None

    @cached_property
    def _blocks(self) -> AnyArray:
        assert self.uniform_length is not None
        return self.tokens[self.offsets[0] : self.offsets[-1]].reshape(-1, self.uniform_length)

    def block(self, samples: Array) -> Array:
        """One row per sample, of sequences that have one length."""
        return self._blocks[samples].astype(np.int64)

    def part(self, begin: int, end: int) -> "Sequences":
        labels = None if self.labels is None else self.labels[begin:end]
        return Sequences(tokens=self.tokens, offsets=self.offsets[begin : end + 1], labels=labels)


def token_type(vocabulary_size: int) -> type[np.integer]:
    return np.uint16 if vocabulary_size <= np.iinfo(np.uint16).max + 1 else np.uint32


def write_sequences(folder: Path, rows: Sequence[Array], labels: Sequence[int] | None, vocabulary_size: int) -> None:
    folder.mkdir(parents=True)
    np.save(folder / "tokens.npy", np.concatenate(rows).astype(token_type(vocabulary_size)))
    np.save(folder / "offsets.npy", np.cumsum([0, *map(len, rows)], dtype=np.int64))
    if labels is not None:
        np.save(folder / "labels.npy", np.asarray(labels, dtype=np.int64))
    (folder / MANIFEST).write_text(json.dumps({"sequences": len(rows), "vocabulary_size": vocabulary_size}))


def read_sequences(folder: Path) -> Sequences:
    labels = folder / "labels.npy"
    return Sequences(
        # A plain view of the mapped file: the mapping's own class makes every access slower.
        tokens=np.asarray(np.load(folder / "tokens.npy", mmap_mode="r")),
        offsets=np.load(folder / "offsets.npy"),
        labels=np.load(labels) if labels.exists() else None,
    )
