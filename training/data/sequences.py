"""Token sequences on disk: one flat array with offsets, written as they come, read by every process
of a host without copying.
"""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from traindyno.core.documents.versions import Format, VersionUnknown
from training.data.batch import AnyArray, Array, Mask
from training.errors import WorkloadError

MANIFEST = "traindyno-data.json"
# Version 1 found the documents of packed sequences by their end token, version 2 had no loss masks.
PART = Format(name=MANIFEST, version=3)
DOCUMENTS = "documents"
LOSS_MASK = "loss_mask"
# The manifest names a part's arrays: one that is not known here may change what is trained on.
KNOWN_ARRAYS = {"tokens", "offsets", DOCUMENTS, LOSS_MASK}
# These are the parts of a folder of tokens.
TRAIN = "train"
EVALUATION = "evaluation"
TOKENIZER = "tokenizer"


@dataclass(frozen=True, kw_only=True)
class Sequences:
    """Sequence i is ``tokens[begins[i] : begins[i] + lengths[i]]``; ``labels`` has one number each,
    or is None.

    ``documents`` are the places in ``tokens`` where a text begins, in their order; None if each
    sequence is of one text.

    ``loss_mask`` is 1 for the tokens that count in the loss; None if all of them do.

    ``tokens`` [T], ``begins`` [N], ``lengths`` [N], ``labels`` [N], ``documents`` [D],
    ``loss_mask`` [T].
    """

    tokens: AnyArray
    begins: Array
    lengths: Array
    labels: Array | None
    documents: Array | None
    loss_mask: AnyArray | None

    def __len__(self) -> int:
        return len(self.begins)

    @cached_property
    def uniform_length(self) -> int | None:
        """The length that all sequences have, or None."""
        first = int(self.lengths[0])
        return first if (self.lengths == first).all() else None

    @cached_property
    def _blocks(self) -> AnyArray:
        """Returns [N, L], a view of ``tokens`` with a sequence in each row.

        Sequences of one length are stored end to end.
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
            documents=self.documents,
            loss_mask=self.loss_mask,
        )

    def counted(self, samples: Array, width: int) -> Mask:
        """Returns [B, L], true where one of the first ``width`` tokens of ``samples`` [B] counts in
        the loss; of sequences with a mask.
        """
        assert self.loss_mask is not None
        columns = np.arange(width)
        chosen = self.loss_mask.take(self.begins[samples][:, None] + columns, mode="clip")
        counted: Mask = (chosen != 0) & (columns < self.lengths[samples][:, None])
        return counted

    def positions(self, samples: Array, width: int) -> Array:
        """Returns [B, L]: of ``samples`` [B], the position of each of ``width`` tokens in its
        document, which begins in its sequence or before. Padding goes on with the last one.
        """
        columns = np.broadcast_to(np.arange(width), (len(samples), width))
        if self.documents is None:
            return columns.copy()
        begins = self.begins[samples]
        first = np.searchsorted(self.documents, begins)
        ends = begins + np.minimum(width, self.lengths[samples])
        counts = np.searchsorted(self.documents, ends) - first
        rows = np.repeat(np.arange(len(samples)), counts)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        places = self.documents[first[rows] + within] - begins[rows]
        latest = np.zeros((len(samples), width), dtype=np.int64)
        latest[rows, places] = places
        return columns - np.maximum.accumulate(latest, axis=1)


def end_to_end(
    tokens: AnyArray,
    lengths: Array,
    labels: Array | None = None,
    documents: Array | None = None,
    loss_mask: AnyArray | None = None,
) -> Sequences:
    """Sequences of ``lengths`` [N] and ``labels`` [N] that are stored in ``tokens`` [T] one after
    another; ``documents`` [D] begin there. ``loss_mask`` [T].
    """
    lengths = np.asarray(lengths, dtype=np.int64)
    return Sequences(
        tokens=tokens,
        begins=np.cumsum(lengths) - lengths,
        lengths=lengths,
        labels=labels,
        documents=documents,
        loss_mask=loss_mask,
    )


def token_type(vocabulary_size: int) -> type[np.integer]:
    return np.uint16 if vocabulary_size <= np.iinfo(np.uint16).max + 1 else np.uint32


class ArrayFile:
    """An array [N] in NumPy's format, whose values are written as they come."""

    def __init__(self, path: Path, kind: type[np.integer]) -> None:
        self._type = np.dtype(kind)
        self._count = 0
        self._file = path.open("wb")
        self._write_header()

    def _write_header(self) -> None:
        """NumPy leaves room in it for a larger count: its size is always the same."""
        described = {"descr": self._type.str, "fortran_order": False, "shape": (self._count,)}
        np.lib.format.write_array_header_1_0(self._file, described)

    def append(self, values: AnyArray) -> None:
        """Writes ``values`` [N]."""
        self._file.write(values.astype(self._type).tobytes())
        self._count += len(values)

    def close(self) -> None:
        self._file.seek(0)
        self._write_header()
        self._file.close()


class SequenceWriter:
    """Writes each sequence when it is given. The manifest is written last."""

    def __init__(self, folder: Path, vocabulary_size: int) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._described = {"vocabulary_size": vocabulary_size, "sequences": 0, "tokens": 0}
        kinds = {"tokens": token_type(vocabulary_size), "offsets": np.int64}
        self._files = {name: self._file(name, kind) for name, kind in kinds.items()}
        self._files["offsets"].append(np.zeros(1))

    def _file(self, name: str, kind: type[np.integer]) -> ArrayFile:
        return ArrayFile(self._folder / f"{name}.npy", kind)

    def __len__(self) -> int:
        return self._described["sequences"]

    def append(
        self, tokens: Array, documents: Array | None = None, loss_mask: Mask | None = None
    ) -> None:
        """Writes a sequence. All sequences have the same arrays.

        Args:
            tokens: [L]
            documents: [D], the places in the sequence where a text begins.
            loss_mask: [L], true for the tokens that count in the loss.
        """
        if documents is not None:
            if DOCUMENTS not in self._files:
                self._files[DOCUMENTS] = self._file(DOCUMENTS, np.int64)
            self._files[DOCUMENTS].append(documents + self._described["tokens"])
        if loss_mask is not None:
            if LOSS_MASK not in self._files:
                self._files[LOSS_MASK] = self._file(LOSS_MASK, np.uint8)
            self._files[LOSS_MASK].append(loss_mask)
        self._files["tokens"].append(tokens)
        self._described["sequences"] += 1
        self._described["tokens"] += len(tokens)
        self._files["offsets"].append(np.asarray([self._described["tokens"]]))

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        described = {**self._described, "arrays": sorted(self._files)}
        (self._folder / MANIFEST).write_text(json.dumps(PART.mark(described)))


def write_labels(folder: Path, labels: Array) -> None:
    """Writes ``labels`` [N], one number for each sequence of the folder."""
    np.save(folder / "labels.npy", labels)


def read_sequences(folder: Path) -> Sequences:
    """Raises WorkloadError for tokens of another Traindyno, which may mean something else."""
    try:
        arrays = PART.read(json.loads((folder / MANIFEST).read_text()))["arrays"]
    except VersionUnknown as error:
        raise WorkloadError(f"{folder}: {error}; make the tokens again") from error
    unknown = set(arrays) - KNOWN_ARRAYS
    if unknown:
        raise WorkloadError(
            f"{folder} has arrays of another Traindyno ({', '.join(sorted(unknown))}); expected "
            f"{', '.join(sorted(KNOWN_ARRAYS))} at most"
        )
    labels = folder / "labels.npy"
    return end_to_end(
        _mapped(folder, "tokens"),
        np.diff(np.load(folder / "offsets.npy")),
        np.load(labels) if labels.exists() else None,
        np.load(folder / f"{DOCUMENTS}.npy") if DOCUMENTS in arrays else None,
        _mapped(folder, LOSS_MASK) if LOSS_MASK in arrays else None,
    )


def _mapped(folder: Path, name: str) -> AnyArray:
    """Returns [T], a plain view of the mapped file: the mapping's own class makes every access
    slower.
    """
    return np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r"))
