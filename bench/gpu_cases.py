"""The races on a GPU: models of the four experiments at full size, from their configurations, in
bf16.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.race_case import Against, RaceCase
from traindyno.core.suite.choices import Compiler

# Weights, gradients and AdamW's two moments in single precision: 16 bytes for each of 6.05 billion
# parameters.
GPT_J_LEAST_BYTES = 16 * 6_050_882_784
LLAMA = {"model_type": "llama", "vocab_size": 128_256, "max_position_embeddings": 8192}


@dataclass(frozen=True, slots=True, kw_only=True)
class FullSize:
    name: str
    task: str
    config: Mapping[str, Any]
    length: int
    batch: int
    compilers: tuple[Compiler, ...] = (Compiler.NONE, Compiler.INDUCTOR)
    settings: Mapping[str, Any] = field(default_factory=dict)


MODELS = (
    FullSize(
        name="GPT-2 124M", task="causal-lm", config={"model_type": "gpt2"}, length=1024, batch=16
    ),
    FullSize(
        name="BERT-base", task="masked-lm", config={"model_type": "bert"}, length=512, batch=32
    ),
    FullSize(
        name="ALBERT-base",
        task="masked-lm",
        config={
            "model_type": "albert",
            "embedding_size": 128,
            "hidden_size": 768,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "intermediate_size": 3072,
        },
        length=512,
        batch=32,
        compilers=(Compiler.NONE,),
    ),
    # Beside peft in Trainer, from which TRL's trainers inherit their loop
    FullSize(
        name="Llama 1.2B with LoRA of rank 16",
        task="causal-lm",
        config={
            "model_type": "llama",
            "vocab_size": 128_256,
            "hidden_size": 2048,
            "intermediate_size": 8192,
            "num_hidden_layers": 16,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "tie_word_embeddings": True,
        },
        length=1024,
        batch=8,
        compilers=(Compiler.NONE,),
        settings={"adapter": {"rank": 16}},
    ),
)
GPT_J = FullSize(
    name="GPT-J 6B", task="causal-lm", config={"model_type": "gptj"}, length=1024, batch=4
)


#: Models whose state in single precision fits into 80 GB, but for the 8B, which needs 141 GB.
MEMORY_CASES: Mapping[str, tuple[FullSize, Mapping[str, Any]]] = {
    "GPT-2 124M": (MODELS[0], {}),
    "Llama 1B": (
        FullSize(
            name="Llama 1B",
            task="causal-lm",
            config={
                **LLAMA,
                "hidden_size": 2048,
                "intermediate_size": 8192,
                "num_hidden_layers": 16,
                "num_attention_heads": 32,
                "num_key_value_heads": 8,
                "tie_word_embeddings": True,
            },
            length=2048,
            batch=4,
        ),
        {},
    ),
    "Llama 8B": (
        FullSize(
            name="Llama 8B",
            task="causal-lm",
            config={
                **LLAMA,
                "hidden_size": 4096,
                "intermediate_size": 14_336,
                "num_hidden_layers": 32,
                "num_attention_heads": 32,
                "num_key_value_heads": 8,
            },
            length=2048,
            batch=1,
        ),
        {"activation_checkpointing": True},
    ),
}


def memory_case(name: str) -> RaceCase:
    model, settings = MEMORY_CASES[name]
    return _case(model, settings, is_quick=True, with_theirs=False)


def full_size_cases(models: tuple[FullSize, ...] = MODELS, *, is_quick: bool) -> Iterator[RaceCase]:
    for compiler in Compiler:
        for model in models:
            if compiler in model.compilers:
                yield _case(model, {"compiler": compiler}, is_quick=is_quick)


def gpt_j_case(*, is_quick: bool) -> RaceCase:
    return _case(GPT_J, {"activation_checkpointing": True}, is_quick=is_quick, with_theirs=False)


def _case(
    model: FullSize, settings: Mapping[str, Any], *, is_quick: bool, with_theirs: bool = True
) -> RaceCase:
    how = "compiled" if settings.get("compiler") == Compiler.INDUCTOR else "eager"
    return RaceCase(
        name=f"{model.name}, {model.length} tokens, batch {model.batch}, {how}",
        against=Against.SAME_WORK,
        workload={
            "task": model.task,
            "examples": 1_000_000,
            "model": {"config": model.config},
            "dataset": {"format": "synthetic"},
            "sequence_length": model.length,
        },
        settings={
            "instance": "local.gpu",
            "strategy": "single",
            "precision": "bf16",
            "batch_size_per_device": model.batch,
            "learning_rate": {"base": 1e-4},
            "weight_decay": 0.01,
            "gradient_clip_norm": 1.0,
            "dropout": 0.0,
            "pin_memory": True,
            **model.settings,
            **settings,
        },
        steps=6 if is_quick else 40,
        warmup_steps=3 if is_quick else 10,
        rounds=1 if is_quick else 2,
        threads=None,
        with_theirs=with_theirs,
    )
