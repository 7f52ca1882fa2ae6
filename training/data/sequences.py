"""Token sequences on disk: one flat array with offsets, read by every process of a host without copying."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

MANIFEST = "traindyno-data.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequences:
    """``offsets`` has one entry more than there are sequences; ``labels`` has one per sequence or is None."""

    tokens: npt.NDArray[np.integer]
    offsets: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64] | None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        lengths: npt.NDArray[np.int64] = np.diff(self.offsets)
        return lengths

    def part(self, begin: int, end: int) -> "Sequences":
        labels = None if self.labels is None else self.labels[begin:end]
        return Sequences(tokens=self.tokens, offsets=self.offsets[begin : end + 1], labels=labels)


def token_type(vocabulary_size: int) -> type[np.integer]:
    return np.uint16 if vocabulary_size <= np.iinfo(np.uint16).max + 1 else np.uint32


def write_sequences(
    folder: Path, sequences: Iterable[npt.NDArray[np.integer]], labels: Iterable[int] | None, vocabulary_size: int
) -> None:
    folder.mkdir(parents=True)
    rows = list(sequences)
    flat = np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)
    np.save(folder / "tokens.npy", flat.astype(token_type(vocabulary_size)))
    np.save(folder / "offsets.npy", np.cumsum([0, *map(len, rows)], dtype=np.int64))
    if labels is not None:
        np.save(folder / "labels.npy", np.fromiter(labels, dtype=np.int64))
    (folder / MANIFEST).write_text(json.dumps({"sequences": len(rows), "tokens": len(flat)}))


def read_sequences(folder: Path) -> Sequences:
    labels = folder / "labels.npy"
    return Sequences(
        tokens=np.load(folder / "tokens.npy", mmap_mode="r"),
        offsets=np.load(folder / "offsets.npy"),
        labels=np.load(labels) if labels.exists() else None,
    )
