"""The run's token sequences and tokenizer: prepared before, or tokenised now by one process of each host."""

from dataclasses import dataclass
from pathlib import Path

from transformers import AutoTokenizer, PreTrainedTokenizerBase

from traindyno.core.suite import Settings, Workload
from training.data.once_per_host import made_once_per_host
from training.data.prepare import prepare
from training.data.sequences import MANIFEST, Sequences, read_sequences
from training.job import Job
from training.tokenizer import load_tokenizer
from training.topology import Topology

TRAIN = "train"
EVALUATION = "evaluation"
TOKENIZER = "tokenizer"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenDataset:
    """``evaluation`` is the evaluation split, or without one the training sequences' last part, not trained on."""

    train: Sequences
    evaluation: Sequences | None
    tokenizer: PreTrainedTokenizerBase


def load_dataset(workload: Workload, settings: Settings, job: Job, topology: Topology) -> TokenDataset:
    folder = job.data_root
    if folder is None or not (folder / TRAIN / MANIFEST).exists():
        folder = made_once_per_host("data", topology, lambda made: tokenise(workload, settings, job, made))
    evaluation = folder / EVALUATION
    return TokenDataset(
        train=read_sequences(folder / TRAIN),
        evaluation=read_sequences(evaluation) if evaluation.exists() else None,
        tokenizer=AutoTokenizer.from_pretrained(folder / TOKENIZER),
    )


def tokenise(workload: Workload, settings: Settings, job: Job, folder: Path) -> None:
    tokenizer = load_tokenizer(workload, job)
    prepare(workload, tokenizer, job.data_root, folder, packing=settings.packing)
    tokenizer.save_pretrained(folder / TOKENIZER)
