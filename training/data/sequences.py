"""Token sequences on disk: one flat array with offsets, written as they come, read by every process
of a host without copying.
"""

import json
from array import array
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from training.data.batch import AnyArray, Array

MANIFEST = "traindyno-data.json"
# These are the parts of a folder of tokens.
TRAIN, EVALUATION, TOKENIZER = "train", "evaluation", "tokenizer"


@dataclass(frozen=True, kw_only=True)
class Sequences:
    """Sequence i is ``tokens[begins[i] : begins[i] + lengths[i]]``; ``labels`` has one number each,
    or is None.

    ``tokens`` [T], ``begins`` [N], ``lengths`` [N], ``labels`` [N].
    """

    tokens: AnyArray
    begins: Array
    lengths: Array
    labels: Array | None = None

    def __len__(self) -> int:
        return len(self.begins)

    @cached_property
    def uniform_length(self) -> int | None:
        """The length that all sequences have, or None."""
        first = int(self.lengths[0])
        return first if (self.lengths == first).all() else None

    @cached_property
    def _blocks(self) -> AnyArray:
        """Returns [N, L], a view of ``tokens``: sequences of one length are stored end to end, so
        each row is one.
        """
        assert self.uniform_length is not None
        whole = len(self.tokens) // self.uniform_length * self.uniform_length
        return self.tokens[:whole].reshape(-1, self.uniform_length)

    def block(self, samples: Array) -> Array:
        """Returns [B, L], the tokens of ``samples`` [B], whose sequences have one length."""
        assert self.uniform_length is not None
        return self._blocks[self.begins[samples] // self.uniform_length].astype(np.int64)

    def select(self, samples: Array) -> "Sequences":
        """The same tokens, but only the sequences ``samples`` [N]."""
        labels = None if self.labels is None else self.labels[samples]
        return Sequences(
            tokens=self.tokens,
            begins=self.begins[samples],
            lengths=self.lengths[samples],
            labels=labels,
        )


def end_to_end(tokens: AnyArray, lengths: Array, labels: Array | None = None) -> Sequences:
    """Sequences of ``lengths`` [N] and ``labels`` [N] that are stored in ``tokens`` [T] one after
    another.
    """
    lengths = np.asarray(lengths, dtype=np.int64)
    return Sequences(
        tokens=tokens, begins=np.cumsum(lengths) - lengths, lengths=lengths, labels=labels
    )


def token_type(vocabulary_size: int) -> type[np.integer]:
    return np.uint16 if vocabulary_size <= np.iinfo(np.uint16).max + 1 else np.uint32


class SequenceWriter:
    """Writes each sequence when it is given; only the offsets stay in memory.

    The manifest is written last.
    """

    def __init__(self, folder: Path, vocabulary_size: int) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._vocabulary_size = vocabulary_size
        self._type = np.dtype(token_type(vocabulary_size))
        self._offsets = array("q", [0])
        self._file = (folder / "tokens.npy").open("wb")
        self._write_header(0)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def append(self, tokens: Array) -> None:
        """Writes ``tokens`` [L]."""
        self._file.write(tokens.astype(self._type).tobytes())
        self._offsets.append(self._offsets[-1] + len(tokens))

    def _write_header(self, count: int) -> None:
        """NumPy leaves room in it for a larger ``count``: its size is always the same."""
        described = {"descr": self._type.str, "fortran_order": False, "shape": (count,)}
        np.lib.format.write_array_header_1_0(self._file, described)

    def close(self) -> None:
        self._file.seek(0)
        self._write_header(self._offsets[-1])
        self._file.close()
        np.save(self._folder / "offsets.npy", np.frombuffer(self._offsets, dtype=np.int64))
        described = {"sequences": len(self), "vocabulary_size": self._vocabulary_size}
        (self._folder / MANIFEST).write_text(json.dumps(described))


def write_labels(folder: Path, labels: Array) -> None:
    """Writes ``labels`` [N], one number for each sequence of the folder."""
    np.save(folder / "labels.npy", labels)


def read_sequences(folder: Path) -> Sequences:
    labels = folder / "labels.npy"
    return end_to_end(
        # A plain view of the mapped file: the mapping's own class makes every access slower.
        np.asarray(np.load(folder / "tokens.npy", mmap_mode="r")),
        np.diff(np.load(folder / "offsets.npy")),
        np.load(labels) if labels.exists() else None,
    )
