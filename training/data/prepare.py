"""Tokenises a dataset once, into a folder that every process of a host reads."""

import itertools
from collections.abc import Iterator
from pathlib import Path

from transformers import PreTrainedTokenizerBase

from traindyno.core.suite.suite import Task, Workload
from training.data.encoding import Encoded, encode
from training.data.labels import LabelCodes
from training.data.rows import DataRoot, read_rows
from training.data.sequences import write_sequences
from training.errors import WorkloadError

EVALUATION_EXAMPLES = 512


def prepare(
    workload: Workload,
    tokenizer: PreTrainedTokenizerBase,
    root: DataRoot | None,
    folder: Path,
    *,
    packing: bool,
    with_train: bool = True,
) -> None:
    """``folder`` gets ``train`` and, if the workload names an evaluation split, ``evaluation``."""
    dataset = workload.dataset
    assert dataset is not None
    codes = LabelCodes(workload.label_count, dataset.label_column)
    parts = {"train": (dataset.split, workload.examples)} if with_train else {}
    if dataset.evaluation_split is not None:
        parts["evaluation"] = (dataset.evaluation_split, EVALUATION_EXAMPLES)
    for name, (split, limit) in parts.items():
        encoded = _encoded_split(workload, tokenizer, root, split, codes=codes, packing=packing)
        kept = list(itertools.islice(encoded, limit))
        if not kept:
            where, length = root or dataset.path, workload.sequence_length
            raise WorkloadError(f"the split {split!r} of the dataset at {where} gives no sequence of {length} tokens")
        labels = [one.label for one in kept if one.label is not None]
        write_sequences(folder / name, [one.tokens for one in kept], labels or None, len(tokenizer))


def _encoded_split(
    workload: Workload,
    tokenizer: PreTrainedTokenizerBase,
    root: DataRoot | None,
    split: str,
    *,
    codes: LabelCodes,
    packing: bool,
) -> Iterator[Encoded]:
    dataset, length = workload.dataset, workload.sequence_length
    assert dataset is not None
    assert length is not None
    rows = read_rows(dataset, root, split, with_labels=workload.task is Task.SEQUENCE_CLASSIFICATION)
    return encode(rows, tokenizer, task=workload.task, sequence_length=length, packing=packing, codes=codes)
