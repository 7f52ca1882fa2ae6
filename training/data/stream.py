"""Reads training sequences from S3 during training: each rank tokenises its own share of files."""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import distributed
from torch.utils.data import IterableDataset, get_worker_info
from transformers import PreTrainedTokenizerBase

from traindyno.core.suite.choices import Task
from training.data.batch import Array, Batch
from training.data.chat_encoding import ChatEncoder
from training.data.collate import Collate
from training.data.conversations import has_chat, parsed
from training.data.encoding import Encoded, Encoder
from training.data.files import DataFile
from training.data.labels import LabelNumbers
from training.data.loader import load
from training.data.rows import file_objects, file_rows
from training.data.sequences import Sequences, end_to_end
from training.errors import WorkloadError
from training.process.process_group import sum_over_ranks
from training.process.run_settings import RunSettings

LABEL_COUNT = "label_count"  # a batch's entries between the loader and the step


class StreamedBatches(IterableDataset[Batch]):
    """An endless sequence of this rank's batches.

    Files are dealt to the ranks and their workers in a seeded order per epoch; with fewer files
    than readers, each reader takes every n-th sequence of all files.
    """

    def __init__(
        self,
        run: RunSettings,
        files: Sequence[DataFile],
        tokenizer: PreTrainedTokenizerBase,
        collate: Collate,
        *,
        data_rank: int,
        data_world_size: int,
        first_batch: int = 0,
    ) -> None:
        """Reads the batches of a rank from files.

        Args:
            run: The settings of the run.
            files: The files of the training split.
            tokenizer: The tokenizer that makes the tokens.
            collate: Makes batches of sequences.
            data_rank: The number of this reader of data among the readers.
            data_world_size: The number of readers.
            first_batch: The first of this rank's batches to read. A resumed run has trained on
                the batches before it.
        """
        self._run = run
        self._files = files
        self._tokenizer = tokenizer
        self._collate = collate
        self._data_rank = data_rank
        self._data_world_size = data_world_size
        self._first_batch = first_batch
        self._has_chat = has_chat(run.workload, files)
        self._numbers = LabelNumbers(names={}, label_count=run.workload.label_count)

    def __iter__(self) -> Iterator[Batch]:
        worker = get_worker_info()
        workers, place = (1, 0) if worker is None else (worker.num_workers, worker.id)
        # The loader takes a batch of each worker in turn, from the first one on: the workers'
        # shares rotate instead.
        begin, number = divmod(self._first_batch + place, workers)
        readers = self._data_world_size * workers
        reader = self._data_rank * workers + number
        sequences = itertools.chain.from_iterable(
            self._epoch(epoch, readers, reader) for epoch in itertools.count()
        )
        size = self._run.settings.batch_size
        next(itertools.islice(sequences, begin * size, begin * size), None)  # of the batches before
        for batch in itertools.count(begin):
            rows = list(itertools.islice(sequences, size))
            first = (batch * readers + reader) * size
            yield self._batch(_held(rows, self._numbers), np.arange(first, first + size))

    def _batch(self, sequences: Sequences, positions: Array) -> Batch:
        """The batch of all of these sequences, whose ``positions`` in the run's order are [B]."""
        samples = np.arange(len(positions))
        batch = self._collate(sequences, samples, positions)
        counts = self._collate.label_counts(sequences, samples)
        if counts is not None:
            batch[LABEL_COUNT] = torch.tensor(float(counts.sum()), dtype=torch.float64)
        return batch

    def _epoch(self, epoch: int, readers: int, reader: int) -> Iterator[Encoded]:
        order = np.random.default_rng((self._run.settings.seed, epoch)).permutation(
            len(self._files)
        )
        files = [self._files[place] for place in order]
        if len(files) >= readers:
            sequences = self._encoded(files[reader::readers])
        else:
            sequences = itertools.islice(self._encoded(files), reader, None, readers)
        has_sequence = False
        for sequence in sequences:
            has_sequence = True
            yield sequence
        if not has_sequence:
            raise WorkloadError(
                f"reader {reader + 1} of {readers} finds no sequence of "
                f"{self._run.workload.sequence_length} tokens in its share of {len(files)} files; "
                "expected larger files or fewer processes and workers"
            )

    def _encoded(self, files: list[DataFile]) -> Iterator[Encoded]:
        workload = self._run.workload
        assert workload.dataset is not None
        assert workload.sequence_length is not None
        packing = self._run.settings.packing
        if self._has_chat:
            chats = ChatEncoder(
                self._tokenizer,
                workload.dataset,
                sequence_length=workload.sequence_length,
                packing=packing,
            )
            return chats.encode(parsed(file_objects(workload.dataset, files)))
        rows = file_rows(
            workload.dataset, files, with_labels=workload.task is Task.SEQUENCE_CLASSIFICATION
        )
        encoder = Encoder(
            self._tokenizer,
            task=workload.task,
            sequence_length=workload.sequence_length,
            packing=packing,
        )
        return encoder.encode(rows)


def _held(rows: list[Encoded], numbers: LabelNumbers) -> Sequences:
    labels = [numbers.number(row.label) for row in rows if row.label is not None]
    lengths = np.asarray([len(row.tokens) for row in rows])
    documents = [
        row.documents + begin
        for row, begin in zip(rows, np.cumsum(lengths) - lengths, strict=True)
        if row.documents is not None
    ]
    masks = [row.loss_mask for row in rows if row.loss_mask is not None]
    return end_to_end(
        np.concatenate([row.tokens for row in rows]),
        lengths,
        np.asarray(labels, dtype=np.int64) if labels else None,
        np.concatenate(documents) if documents else None,
        np.concatenate(masks) if masks else None,
    )


def stream_steps(
    batches: StreamedBatches, step_count: int, run: RunSettings
) -> Iterator[list[Batch]]:
    row = load(batches, run.settings)
    for _ in range(step_count):
        yield _weighed(list(itertools.islice(row, run.settings.gradient_accumulation_steps)))


def _weighed(batches: list[Batch]) -> list[Batch]:
    """Weight each batch by its part of the step's labels, if batches and ranks have different
    numbers of labels. Ranks of one replica read the same batches; they count equally in numerator
    and denominator.
    """
    if LABEL_COUNT not in batches[0]:
        return batches
    counts = torch.stack([batch.pop(LABEL_COUNT) for batch in batches])
    processes = distributed.get_world_size() if distributed.is_initialized() else 1
    mean_count = sum_over_ranks(counts.sum()) / (len(batches) * processes)
    for batch, count in zip(batches, counts, strict=True):
        batch["weight"] = (count / mean_count).float()
    return batches
