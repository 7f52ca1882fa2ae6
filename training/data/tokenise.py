"""A run's dataset as a folder of tokens: sequences to train and to evaluate on, and the tokenizer that made them."""

from pathlib import Path

from traindyno.core.suite.choices import InputMode
from training.data.prepare import prepare
from training.job import Job
from training.run_settings import RunSettings
from training.tokenizer import load_tokenizer

TRAIN = "train"
EVALUATION = "evaluation"
TOKENIZER = "tokenizer"


def tokenise(run: RunSettings, job: Job, folder: Path) -> None:
    assert run.workload.dataset is not None
    tokenizer = load_tokenizer(run.workload, job)
    is_streamed = run.workload.dataset.input_mode is InputMode.STREAM
    packing = run.settings.packing
    prepare(run.workload, tokenizer, job.data_root, folder, packing=packing, with_train=not is_streamed)
    tokenizer.save_pretrained(folder / TOKENIZER)
