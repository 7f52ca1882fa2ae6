"""A dataset as a folder of tokens: sequences to train and to evaluate on, and the tokenizer that made them."""

import itertools
from collections.abc import Iterator
from pathlib import Path

from transformers import PreTrainedTokenizerBase

from traindyno.core.suite.choices import InputMode
from traindyno.core.suite.suite import Task, Workload
from training.data.encoding import Encoded, encode
from training.data.labels import LabelCodes
from training.data.rows import DataRoot, read_rows
from training.data.sequences import EVALUATION, TOKENIZER, TRAIN, write_sequences
from training.errors import WorkloadError
from training.job import Job
from training.run_settings import RunSettings
from training.tokenizer import load_tokenizer

EVALUATION_EXAMPLES = 512


def tokenise(run: RunSettings, job: Job, folder: Path) -> None:
    """Fills ``folder``, which every process of a host then reads. A streamed dataset's training part stays in S3."""
    assert run.workload.dataset is not None
    tokenizer = load_tokenizer(run.workload, job)
    is_streamed = run.workload.dataset.input_mode is InputMode.STREAM
    packing = run.settings.packing
    prepare(run.workload, tokenizer, job.data_root, folder, packing=packing, with_train=not is_streamed)
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
    """``folder`` gets ``train`` and, if the workload names an evaluation split, ``evaluation``."""
    dataset = workload.dataset
    assert dataset is not None
    codes = LabelCodes(workload.label_count, dataset.label_column)
    parts = {TRAIN: (dataset.split, workload.examples)} if with_train else {}
    if dataset.evaluation_split is not None:
        parts[EVALUATION] = (dataset.evaluation_split, EVALUATION_EXAMPLES)
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
