"""A dataset as a folder of tokens: sequences to train and to evaluate on, and the tokenizer that made them."""

import itertools
from pathlib import Path

from transformers import PreTrainedTokenizerBase

from traindyno.core.suite.choices import InputMode, Task
from traindyno.core.suite.workload import Workload
from training.data.encoding import Encoded, Encoder
from training.data.labels import number_labels, write_label_names
from training.data.rows import DataRoot, file_rows, find_files, read_rows
from training.data.sequences import EVALUATION, TOKENIZER, TRAIN, write_sequences
from training.errors import WorkloadError
from training.job import Job
from training.tokenizer import load_tokenizer


def tokenise(workload: Workload, job: Job, folder: Path, *, packing: bool) -> None:
    """Fills ``folder``, which every process of a host then reads. A streamed dataset's training part stays in S3."""
    assert workload.dataset is not None
    tokenizer = load_tokenizer(workload, job)
    is_streamed = workload.dataset.input_mode is InputMode.STREAM
    prepare(workload, tokenizer, job.data_root, folder, packing=packing, with_train=not is_streamed)
    tokenizer.save_pretrained(folder / TOKENIZER)


def prepare(
    workload: Workload,
    tokenizer: PreTrainedTokenizerBase,
    root: DataRoot | None,
    folder: Path,
    *,
    packing: bool,
    with_train: bool = True,
) -> None:
    """``folder`` gets ``train`` (the workload's examples) and, where the workload names one, the evaluation split."""
    dataset = workload.dataset
    assert dataset is not None
    splits: dict[str, tuple[str, int | None]] = {TRAIN: (dataset.split, workload.examples)} if with_train else {}
    if dataset.evaluation_split is not None:
        splits[EVALUATION] = (dataset.evaluation_split, None)
    parts = {
        name: _encoded_split(workload, tokenizer, root, split, packing=packing, limit=limit)
        for name, (split, limit) in splits.items()
    }
    numbers = number_labels(
        (one.label for part in parts.values() for one in part if one.label is not None), workload.label_count
    )
    for name, part in parts.items():
        labels = [numbers.number(one.label) for one in part if one.label is not None]
        write_sequences(folder / name, [one.tokens for one in part], labels or None, len(tokenizer))
    folder.mkdir(parents=True, exist_ok=True)
    write_label_names(folder, numbers)


def _encoded_split(
    workload: Workload,
    tokenizer: PreTrainedTokenizerBase,
    root: DataRoot | None,
    split: str,
    *,
    packing: bool,
    limit: int | None,
) -> list[Encoded]:
    dataset, length = workload.dataset, workload.sequence_length
    assert dataset is not None
    assert length is not None
    with_labels = workload.task is Task.SEQUENCE_CLASSIFICATION
    if root is None:
        rows, source = read_rows(dataset, root, split, with_labels=with_labels), str(dataset.path)
    else:
        files = find_files(dataset, root, split)
        rows, source = file_rows(dataset, files, with_labels=with_labels), ", ".join(file.name for file in files)
    encoder = Encoder(tokenizer, task=workload.task, sequence_length=length, packing=packing)
    kept = list(itertools.islice(encoder.encode(rows), limit))
    if not kept:
        where = root or dataset.path
        raise WorkloadError(f"the split {split!r} of the dataset at {where} gives no sequence of {length} tokens")
    print(_summary(split, source, len(kept), encoder.left_out), flush=True)  # noqa: T201
    return kept


def _summary(split: str, source: str, sequence_count: int, left_out: int) -> str:
    short = f"; {left_out:,} rows are too short to train on and were left out" if left_out else ""
    return f"split {split}: {sequence_count:,} sequences from {source[:400]}{short}"
