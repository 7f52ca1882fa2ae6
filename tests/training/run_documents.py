"""Small runs as the container gets them: tiny models of the experiments on data that the tests
write.
"""

import json
from pathlib import Path
from typing import Any

from tests.training.forked_jobs import run_forked
from tests.training.jobs import REPO_ROOT, JobEnd, run_job
from traindyno.core.run.record import RECORD, read_record
from training.process.run_settings import RunSettings

ENTRY_POINT = REPO_ROOT / "training" / "entry" / "traindyno_train.py"
SEQUENCE_LENGTH = 16
KEY = "0123456789abcdef" * 4

GPT = {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": SEQUENCE_LENGTH}
ENCODER = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": SEQUENCE_LENGTH,
}
MODELS: dict[str, dict[str, Any]] = {
    "gpt2": {"model_type": "gpt2", **GPT},
    "gptj": {"model_type": "gptj", "rotary_dim": 8, **GPT},
    "albert": {"model_type": "albert", "embedding_size": 16, **ENCODER},
    "bert": {"model_type": "bert", **ENCODER},
    # A token sees the four before it.
    "mistral": {"model_type": "mistral", **ENCODER, "num_key_value_heads": 1, "sliding_window": 4},
}
TASKS = {
    "gpt2": "causal-lm",
    "gptj": "causal-lm",
    "mistral": "causal-lm",
    "albert": "masked-lm",
    "bert": "sequence-classification",
}


def run_document(
    model: str = "gpt2",
    *,
    workload: dict[str, Any] | None = None,
    settings: dict[str, Any] | None = None,
    measurement: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Ten steps of four samples with one process; the arguments replace parts of that."""
    document = {
        "run_id": "run-of-a-test",
        "workload": {
            "task": TASKS[model],
            "examples": 10000,
            "model": {"config": MODELS[model]},
            "tokenizer": {"train_vocabulary_size": 400},
            "dataset": {"path": "s3://bucket/data"},
            "sequence_length": SEQUENCE_LENGTH,
            "label_count": 2,
            **(workload or {}),
        },
        "settings": {
            "instance": "local.cpu",
            "strategy": "single",
            "batch_size_per_device": 4,
            "learning_rate": {"base": 0.001},
            "dropout": 0.0,
            **(settings or {}),
        },
        "measurement": {"max_steps": 10, **(measurement or {})},
    }
    return RECORD.mark(document)


def parse_run(document: dict[str, Any]) -> RunSettings:
    return read_record(document, RunSettings)


def run_training(
    folder: Path,
    document: dict[str, Any],
    data: Path | None,
    *,
    processes: int = 1,
    environment: dict[str, str] | None = None,
    is_forked: bool = True,
) -> JobEnd:
    """Runs a training, forked from a process that has imported PyTorch or else as a container
    starts it.
    """
    environment = {**(environment or {}), "SM_HPS": json.dumps(document)}
    if data is not None:
        environment["SM_CHANNEL_TRAIN"] = str(data)
    run = run_forked if is_forked else run_job
    return run(folder, ENTRY_POINT, processes=processes, environment=environment)


def run_preparation(
    folder: Path,
    document: dict[str, Any],
    data: Path | None,
    *,
    environment: dict[str, str] | None = None,
    is_forked: bool = True,
    **asked: Any,
) -> JobEnd:
    """The preparation that the runs of ``document`` share; ``asked`` replaces parts of what is
    asked of it.
    """
    folder.mkdir()
    preparation = {
        "execution_id": "execution",
        "key": KEY,
        "instance": "local.cpu",
        "packing": True,
        **asked,
    }
    given = RECORD.mark({"workload": document["workload"], "preparation": preparation})
    return run_training(folder, given, data, environment=environment, is_forked=is_forked)


def write_texts(folder: Path) -> Path:
    """Two text files of words that follow from each other."""
    folder.mkdir()
    for number in range(2):
        words = [
            f"word{(number * 7 + place * place) % 83} number{place % 11}" for place in range(4000)
        ]
        (folder / f"part{number}.txt").write_text(" ".join(words))
    return folder


def write_reviews(
    folder: Path, *, text: str = "text", label: str = "label", rows: int = 200
) -> Path:
    """A CSV of good and bad reviews of unequal length, with a comma and a line break in some."""
    folder.mkdir()
    lines = [f"{label},{text}"]
    for row in range(rows):
        praise = "good" if row % 2 else "bad"
        lines.append(
            f'{row % 2},"a {praise} film, {"very " * (row % 7)}{praise}\nseen {row} times"'
        )
    (folder / "train.csv").write_text("\n".join(lines))
    return folder
