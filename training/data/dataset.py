"""The run's token sequences: made by arithmetic, prepared before, or tokenised now by one process of each host."""

from dataclasses import dataclass
from pathlib import Path

from transformers import AutoTokenizer, PreTrainedTokenizerBase

from traindyno.core.suite import DatasetFormat
from training.data.once_per_host import made_once_per_host
from training.data.prepare import prepare
from training.data.sequences import MANIFEST, Sequences, read_sequences
from training.data.special_tokens import SpecialTokens, special_tokens
from training.data.synthetic import synthetic_sequences, synthetic_tokens
from training.errors import WorkloadError
from training.job import Job
from training.model import model_config
from training.run_settings import RunSettings
from training.tokenizer import load_tokenizer
from training.topology import Topology

TRAIN = "train"
EVALUATION = "evaluation"
TOKENIZER = "tokenizer"
HELD_OUT_SHARE = 0.05
MOST_HELD_OUT = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenDataset:
    """``evaluation``: the evaluation split, or the training sequences' last part, which is then not trained on."""

    train: Sequences
    evaluation: Sequences | None
    tokenizer: PreTrainedTokenizerBase | None
    special_tokens: SpecialTokens


def load_dataset(run: RunSettings, job: Job, topology: Topology) -> TokenDataset:
    dataset = run.workload.dataset
    assert dataset is not None
    if dataset.format is DatasetFormat.SYNTHETIC:
        return _synthetic(run, job)
    folder = job.data_root
    if folder is None or not (folder / TRAIN / MANIFEST).exists():
        folder = made_once_per_host("data", topology, lambda made: tokenise(run, job, made))
    tokenizer = AutoTokenizer.from_pretrained(folder / TOKENIZER)
    evaluation = folder / EVALUATION
    train, held_out = _held_out(read_sequences(folder / TRAIN), run, has_split=evaluation.exists())
    return TokenDataset(
        train=train,
        evaluation=read_sequences(evaluation) if evaluation.exists() else held_out,
        tokenizer=tokenizer,
        special_tokens=special_tokens(tokenizer),
    )


def tokenise(run: RunSettings, job: Job, folder: Path) -> None:
    tokenizer = load_tokenizer(run.workload, job)
    prepare(run.workload, tokenizer, job.data_root, folder, packing=run.settings.packing)
    tokenizer.save_pretrained(folder / TOKENIZER)


def _synthetic(run: RunSettings, job: Job) -> TokenDataset:
    config = model_config(run.workload, run.settings, None, model_path=job.model_path)
    train, held_out = _held_out(synthetic_sequences(run.workload, config.vocab_size), run, has_split=False)
    special = synthetic_tokens(config.vocab_size)
    return TokenDataset(train=train, evaluation=held_out, tokenizer=None, special_tokens=special)


def _held_out(train: Sequences, run: RunSettings, *, has_split: bool) -> tuple[Sequences, Sequences | None]:
    if not run.measurement.evaluate or has_split:
        return train, None
    count = min(MOST_HELD_OUT, int(len(train) * HELD_OUT_SHARE))
    if count == 0:
        raise WorkloadError(
            f"the dataset gives {len(train)} sequences, too few to hold some out for evaluation; expected an "
            f"evaluation_split, or {int(1 / HELD_OUT_SHARE)} sequences"
        )
    rest = len(train) - count
    return train.part(0, rest), train.part(rest, len(train))
