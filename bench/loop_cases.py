"""The races on a CPU: three sizes of BERT at the same work, and three models with our best cell."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.race_case import Against, RaceCase

HEADS = 4
SYNTHETIC_VOCABULARY = 4096
TRAINED_VOCABULARY = 8192
TEXT_LENGTH = 128
TEXT_BATCH = 8
TEXT_MODELS = {"GPT-2": "causal-lm", "BERT": "sequence-classification", "ALBERT": "masked-lm"}
PADDED_BY_LENGTH = {"padding": "bucket", "packing": False}
PACKED = {"packing": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    hidden: int
    layers: int
    length: int
    batch: int
    steps: int
    rounds: int
    least_ratio: float

    def __str__(self) -> str:
        return f"h{self.hidden}, {self.layers} layers, {self.length} tokens, batch {self.batch}"


# Many short rounds: a shared machine changes its speed within seconds, and the sides of a round
# should see the same.
SIZES = (
    Size(hidden=64, layers=2, length=32, batch=4, steps=100, rounds=25, least_ratio=1.25),
    Size(hidden=64, layers=2, length=32, batch=32, steps=45, rounds=25, least_ratio=1.10),
    Size(hidden=256, layers=4, length=64, batch=16, steps=15, rounds=25, least_ratio=1.00),
)


def same_work_case(size: Size, *, is_quick: bool) -> RaceCase:
    """Classification of synthetic sequences, padded to one length by both."""
    return RaceCase(
        name=f"BERT {size}",
        against=Against.SAME_WORK,
        workload={
            "task": "sequence-classification",
            "examples": 1_000_000,
            "model": {"config": bert_config(size)},
            "dataset": {"format": "synthetic"},
            "sequence_length": size.length,
        },
        settings={
            **_settings(size.batch),
            "weight_decay": 0.01,
            "gradient_clip_norm": 1.0,
            "dropout": 0.0,
        },
        steps=15 if is_quick else size.steps,
        warmup_steps=5,
        rounds=2 if is_quick else size.rounds,
        with_bare=True,
    )


def best_cell_case(model: str, data_folder: str, *, is_quick: bool) -> RaceCase:
    """The same text for both: Trainer's side pads each batch to its longest sequence."""
    task = TEXT_MODELS[model]
    layout = PADDED_BY_LENGTH if task == "sequence-classification" else PACKED
    cells = [
        {"precision": precision, "compiler": compiler, **layout}
        for precision in ("fp32", "bf16")
        for compiler in (("none",) if is_quick else ("none", "inductor"))
    ]
    return RaceCase(
        name=f"{model}, h256, 4 layers, at most {TEXT_LENGTH} tokens, batch {TEXT_BATCH}",
        against=Against.ITS_DEFAULTS,
        workload={
            "task": task,
            "examples": 1_000_000,
            "model": {"config": TEXT_CONFIGS[model]},
            "tokenizer": {"train_vocabulary_size": TRAINED_VOCABULARY},
            "dataset": {"path": data_folder, "format": "json"},
            "sequence_length": TEXT_LENGTH,
        },
        settings={**_settings(TEXT_BATCH), "gradient_clip_norm": 1.0},
        candidates=tuple(cells),
        data_folder=data_folder,
        steps=6 if is_quick else 24,
        warmup_steps=2 if is_quick else 8,
        rounds=1 if is_quick else 3,
    )


def bert_config(size: Size) -> Mapping[str, Any]:
    return {
        "model_type": "bert",
        "vocab_size": SYNTHETIC_VOCABULARY,
        "max_position_embeddings": size.length,
        **_encoder(size.hidden, size.layers),
    }


def _encoder(hidden: int, layers: int) -> Mapping[str, Any]:
    return {
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": HEADS,
        "intermediate_size": 4 * hidden,
    }


def _settings(batch: int) -> Mapping[str, Any]:
    return {
        "instance": "local.cpu",
        "strategy": "single",
        "batch_size_per_device": batch,
        "learning_rate": {"base": 1e-4},
    }


TEXT_CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "GPT-2": {
        "model_type": "gpt2",
        "n_layer": 4,
        "n_embd": 256,
        "n_head": HEADS,
        "n_positions": TEXT_LENGTH,
    },
    "BERT": {"model_type": "bert", "max_position_embeddings": TEXT_LENGTH, **_encoder(256, 4)},
    "ALBERT": {
        "model_type": "albert",
        "max_position_embeddings": TEXT_LENGTH,
        "embedding_size": 128,
        **_encoder(256, 4),
    },
}
