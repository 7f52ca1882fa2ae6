"""The run's token sequences: synthetic, already prepared, or tokenised now by one process of each
host.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from traindyno.core.run.tokens import (
    MOST_HELD_OUT,
    TOKENS_MANIFEST,
    describe_mismatch,
    tokens_manifest,
)
from traindyno.core.run.workload import Workload
from traindyno.core.suite.choices import DatasetFormat, InputMode, Task
from training.data.batch import Array
from training.data.collate import SpecialTokens, special_tokens
from training.data.files import DataFile, find_files
from training.data.labels import read_label_names
from training.data.once_per_host import made_once_per_host
from training.data.sequences import (
    EVALUATION,
    MANIFEST,
    TOKENIZER,
    TRAIN,
    Sequences,
    end_to_end,
    read_sequences,
    token_type,
)
from training.errors import WorkloadError
from training.models.config_numbers import text_of
from training.models.model_config import model_config
from training.process.job import JobPaths
from training.process.process_group import Topology
from training.process.run_settings import RunSettings

MOST_SEQUENCES = 4096  # then the epochs repeat
PAD = 0
MASK = 1
FIRST_ORDINARY = 4
NOISE = 0.1
SEED = 20261121
SHARE = 0.05


def synthetic_tokens(vocabulary_size: int) -> SpecialTokens:
    return SpecialTokens(vocabulary_size=vocabulary_size, pad=PAD, mask=MASK)


def synthetic_sequences(workload: Workload, vocabulary_size: int) -> Sequences:
    assert workload.sequence_length is not None
    count = min(workload.examples, MOST_SEQUENCES)
    length = workload.sequence_length
    random = np.random.default_rng(SEED)
    tokens = _chains(random, count, length, vocabulary_size)
    if workload.task is not Task.SEQUENCE_CLASSIFICATION:
        return end_to_end(
            tokens.reshape(-1).astype(token_type(vocabulary_size)), np.full(count, length)
        )
    label_count = workload.label_count or 2
    labels = random.integers(label_count, size=count)
    tokens[:, 1:3] = (FIRST_ORDINARY + labels)[:, None]
    lengths = random.integers(
        max(3, length // 4), length + 1, size=count
    )  # they differ, as lengths of real text do
    kept = np.arange(length) < lengths[:, None]
    return end_to_end(tokens[kept].astype(token_type(vocabulary_size)), lengths, labels)


def _chains(random: np.random.Generator, count: int, length: int, vocabulary_size: int) -> Array:
    """Returns [N, L] tokens.

    Each follows from the one before by a fixed rule, except for some noise.
    """
    ordinary = vocabulary_size - FIRST_ORDINARY
    tokens = random.integers(ordinary, size=(count, length))
    noisy = random.random((count, length)) < NOISE
    for column in range(1, length):
        follows = (tokens[:, column - 1] * 7 + 3) % ordinary
        tokens[:, column] = np.where(noisy[:, column], tokens[:, column], follows)
    return tokens + FIRST_ORDINARY


def write_manifest(folder: Path, key: str) -> dict[str, dict[str, int]]:
    """Returns the manifest's entries for the folder's parts; there are none where the job only
    checked the model.
    """
    folder.mkdir(parents=True, exist_ok=True)
    counts = _count(folder)
    (folder / TOKENS_MANIFEST).write_text(json.dumps(tokens_manifest(key, counts)))
    return counts


def check_manifest(folder: Path, key: str) -> None:
    """Checks that the folder contains the run's tokens, and all of them."""
    path = folder / TOKENS_MANIFEST
    manifest = json.loads(path.read_text()) if path.exists() else None
    problem = describe_mismatch(manifest, key=key)
    if problem is None and manifest is not None:
        parts = _count(folder)
        if manifest["parts"] != parts:
            expected = f"expected {manifest['parts']}, as its {TOKENS_MANIFEST} says"
            problem = f"it holds {parts}; {expected}"
    if problem:
        raise WorkloadError(
            f"the train channel {folder} does not bring the prepared data: {problem}"
        )


def _count(folder: Path) -> dict[str, dict[str, int]]:
    parts = {
        name: read_sequences(folder / name)
        for name in (TRAIN, EVALUATION)
        if (folder / name).exists()
    }
    return {
        name: {"sequences": len(part), "tokens": len(part.tokens)} for name, part in parts.items()
    }


def hold_out(sequences: Sequences, seed: int) -> tuple[Sequences, Sequences]:
    """Returns the sequences to train on and those to evaluate on, in their order.

    With labels, each class keeps its proportion. Raises WorkloadError if there are too few
    sequences.
    """
    count = min(MOST_HELD_OUT, int(len(sequences) * SHARE))
    if count == 0:
        raise WorkloadError(
            f"the dataset gives {len(sequences)} sequences, too few to hold some out for "
            f"evaluation; expected an evaluation_split, or {int(1 / SHARE)} sequences"
        )
    random = np.random.default_rng((seed, len(sequences)))
    chosen = np.zeros(len(sequences), dtype=bool)
    chosen[_drawn(random, sequences, count)] = True
    return sequences.select(np.flatnonzero(~chosen)), sequences.select(np.flatnonzero(chosen))


def _drawn(random: np.random.Generator, sequences: Sequences, count: int) -> Array:
    """Returns [N], the numbers of ``count`` sequences.

    Sequences are sorted by class, in a random order within each, and every n-th is drawn: each
    class is drawn in its proportion, to within one sequence.
    """
    order: Array = random.permutation(len(sequences))
    if sequences.labels is not None:
        order = order[np.argsort(sequences.labels[order], kind="stable")]
    places = np.linspace(0, len(order), count, endpoint=False) + random.uniform(
        0, len(order) / count
    )
    return order[places.astype(np.int64)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenDataset:
    """The sequences of a run."""

    #: None if the sequences are streamed from the files.
    train: Sequences | None
    files: Sequence[DataFile] = ()
    #: The evaluation split, or some of the training sequences, which are then not trained on.
    evaluation: Sequences | None
    tokenizer: PreTrainedTokenizerBase | None
    special_tokens: SpecialTokens
    #: Whether all sequences have one length, so that nothing has to be padded.
    is_uniform: bool
    #: The names of the classes by number; empty where the data has numbers.
    label_names: Sequence[str] = ()


def load_dataset(run: RunSettings, job: JobPaths, topology: Topology) -> TokenDataset:
    dataset = run.workload.dataset
    assert dataset is not None
    if dataset.format is DatasetFormat.SYNTHETIC:
        return _synthetic(run, job)
    folder = _token_folder(run, job, topology)
    evaluation = read_sequences(folder / EVALUATION) if (folder / EVALUATION).exists() else None
    tokenizer = AutoTokenizer.from_pretrained(
        folder / TOKENIZER, trust_remote_code=run.workload.trust_remote_code
    )
    train = None
    files = list[DataFile]()
    if dataset.input_mode is InputMode.STREAM:
        if run.measurement.evaluates and evaluation is None:
            raise WorkloadError(
                "streamed data has no held-out part; expected dataset.evaluation_split"
            )
        assert job.data_root is not None
        from training.data.conversations import has_chat  # noqa: PLC0415  # pyarrow: only streams need it

        files = find_files(dataset, job.data_root, dataset.split)
        is_packed = run.settings.packing and run.workload.task is not Task.SEQUENCE_CLASSIFICATION
        is_uniform = is_packed and not has_chat(run.workload, files)
    else:
        train = read_sequences(folder / TRAIN)
        if evaluation is None:
            train, evaluation = _held_out(train, run)
        is_uniform = _are_uniform(run, train, evaluation)
    return TokenDataset(
        train=train,
        files=files,
        evaluation=evaluation,
        tokenizer=tokenizer,
        special_tokens=special_tokens(tokenizer),
        is_uniform=is_uniform,
        label_names=read_label_names(folder),
    )


def _token_folder(run: RunSettings, job: JobPaths, topology: Topology) -> Path:
    folder = job.data_root
    if run.tokens is not None:
        if not isinstance(folder, Path):
            raise WorkloadError(
                "the job has no train channel; expected one with the tokens of key "
                f"{run.tokens.key}"
            )
        check_manifest(folder, run.tokens.key)
        return folder
    if isinstance(folder, Path) and (folder / TRAIN / MANIFEST).exists():
        return folder
    from training.data.prepare import tokenise  # noqa: PLC0415  # pyarrow: not needed for tokens that exist

    return made_once_per_host(
        topology,
        lambda made: tokenise(run.workload, job, made, packing=run.settings.packing),
    )


def _synthetic(run: RunSettings, job: JobPaths) -> TokenDataset:
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
    return {part.uniform_length for part in parts if part is not None} == {
        run.workload.sequence_length
    }


def _held_out(train: Sequences, run: RunSettings) -> tuple[Sequences, Sequences | None]:
    return hold_out(train, run.split_seed) if run.measurement.evaluates else (train, None)
