"""The run's token sequences: synthetic, already prepared, or tokenised now by one process of each host."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from transformers import AutoTokenizer, PreTrainedTokenizerBase

from traindyno.core.suite.choices import DatasetFormat, InputMode, Task
from training.data.collate import SpecialTokens, special_tokens
from training.data.files import DataFile
from training.data.held_out import hold_out
from training.data.labels import read_label_names
from training.data.manifest import check_manifest
from training.data.once_per_host import made_once_per_host
from training.data.sequences import EVALUATION, MANIFEST, TOKENIZER, TRAIN, Sequences, read_sequences
from training.data.synthetic import synthetic_sequences, synthetic_tokens
from training.errors import WorkloadError
from training.models.config_numbers import text_of
from training.models.model_config import model_config
from training.process.job import Job
from training.process.run_settings import RunSettings
from training.process.topology import Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenDataset:
    """``train`` is None if the sequences are streamed from ``files``. With ``is_uniform``, nothing has to be padded.

    ``evaluation`` is the evaluation split, or some of the training sequences, which are then not trained on.
    ``label_names`` are the names of the classes by number; they are empty where the data has numbers.
    """

    train: Sequences | None
    files: Sequence[DataFile] = ()
    evaluation: Sequences | None
    tokenizer: PreTrainedTokenizerBase | None
    special_tokens: SpecialTokens
    is_uniform: bool
    label_names: Sequence[str] = ()


def load_dataset(run: RunSettings, job: Job, topology: Topology) -> TokenDataset:
    dataset = run.workload.dataset
    assert dataset is not None
    if dataset.format is DatasetFormat.SYNTHETIC:
        return _synthetic(run, job)
    folder = _token_folder(run, job, topology)
    evaluation = read_sequences(folder / EVALUATION) if (folder / EVALUATION).exists() else None
    tokenizer = AutoTokenizer.from_pretrained(folder / TOKENIZER, trust_remote_code=run.workload.trust_remote_code)
    if dataset.input_mode is InputMode.STREAM:
        return _streamed(run, job, evaluation, tokenizer)
    train = read_sequences(folder / TRAIN)
    if evaluation is None:
        train, evaluation = _held_out(train, run)
    return TokenDataset(
        train=train,
        evaluation=evaluation,
        tokenizer=tokenizer,
        special_tokens=special_tokens(tokenizer),
        is_uniform=_are_uniform(run, train, evaluation),
        label_names=read_label_names(folder),
    )


def _token_folder(run: RunSettings, job: Job, topology: Topology) -> Path:
    folder = job.data_root
    if run.tokens is not None:
        if not isinstance(folder, Path):
            raise WorkloadError(f"the job has no train channel; expected one with the tokens of key {run.tokens.key}")
        check_manifest(folder, run.tokens.key)
        return folder
    if isinstance(folder, Path) and (folder / TRAIN / MANIFEST).exists():
        return folder
    return made_once_per_host("data", topology, lambda made: _tokenise(run, job, made))


def _tokenise(run: RunSettings, job: Job, folder: Path) -> None:
    from training.data.prepare import tokenise  # noqa: PLC0415  # pyarrow: not needed for tokens that exist

    tokenise(run.workload, job, folder, packing=run.settings.packing)


def _streamed(
    run: RunSettings, job: Job, evaluation: Sequences | None, tokenizer: PreTrainedTokenizerBase
) -> TokenDataset:
    dataset = run.workload.dataset
    assert dataset is not None
    assert job.data_root is not None
    from training.data.rows import find_files  # noqa: PLC0415  # pyarrow: only streams read files while training

    if run.measurement.evaluates and evaluation is None:
        raise WorkloadError("streamed data has no held-out part; expected dataset.evaluation_split")
    return TokenDataset(
        train=None,
        files=find_files(dataset, job.data_root, dataset.split),
        evaluation=evaluation,
        tokenizer=tokenizer,
        special_tokens=special_tokens(tokenizer),
        is_uniform=run.settings.packing and run.workload.task is not Task.SEQUENCE_CLASSIFICATION,
    )


def _synthetic(run: RunSettings, job: Job) -> TokenDataset:
    config = model_config(run.workload, None, model_path=job.model_path)
    train, held_out = _held_out(synthetic_sequences(run.workload, text_of(config).vocab_size), run)
    return TokenDataset(
        train=train,
        evaluation=held_out,
        tokenizer=None,
        special_tokens=synthetic_tokens(text_of(config).vocab_size),
        is_uniform=_are_uniform(run, train, held_out),
    )


def _are_uniform(run: RunSettings, *parts: Sequences | None) -> bool:
    return {part.uniform_length for part in parts if part is not None} == {run.workload.sequence_length}


def _held_out(train: Sequences, run: RunSettings) -> tuple[Sequences, Sequences | None]:
    return hold_out(train, run.split_seed) if run.measurement.evaluates else (train, None)
