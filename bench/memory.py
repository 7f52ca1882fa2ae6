"""Memory estimates on fake tensors against the same training steps on real CPU tensors, at full size."""

import time
from typing import Any

from bench.figures import Figure, Section, at_most
from bench.groups import TITLES, command
from traindyno.core.planning.memory import MemoryEstimate
from traindyno.core.suite.suite_file import parse_settings, parse_workload
from training.memory.estimate import estimate_memory, measure_memory

ONE, FOUR, EIGHT = "ml.g5.xlarge", "ml.g5.12xlarge", "ml.p5.48xlarge"
BILLION_8: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14_336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128_256,
    "max_position_embeddings": 8192,
}
LLAMA_162M = {**BILLION_8, "hidden_size": 768, "intermediate_size": 2048, "num_hidden_layers": 12, "vocab_size": 50_304}
MODELS: dict[str, tuple[dict[str, Any], str]] = {
    "GPT-2 124M": ({"model_type": "gpt2"}, "causal-lm"),
    "a Llama-like model of 162M": ({**LLAMA_162M, "num_attention_heads": 12, "num_key_value_heads": 12}, "causal-lm"),
    "BERT-base": ({"model_type": "bert"}, "masked-lm"),
}
SETTINGS: dict[str, dict[str, Any]] = {
    "one device, fp32": {"instance": ONE, "strategy": "single"},
    "ddp over 4, bf16": {"instance": FOUR, "strategy": "ddp", "precision": "bf16"},
    "fsdp over 4, bf16": {"instance": FOUR, "strategy": "fsdp", "precision": "bf16"},
    "pipeline over 4, bf16": {"instance": FOUR, "strategy": "pipeline", "precision": "bf16", "micro_batches": 4},
}
# Model types that a pipeline can split.
PIPELINES = ("gpt2", "bert")
LENGTH, BATCH, LONG = 256, 4, 4096
MOST_DIFFERENCE = 0.1


def measure(*, is_quick: bool) -> Section:
    models = dict(list(MODELS.items())[:1]) if is_quick else MODELS
    figures = [
        compare(f"{model}, {name}", config, task, values)
        for model, (config, task) in models.items()
        for name, values in SETTINGS.items()
        if values["strategy"] != "pipeline" or config["model_type"] in PIPELINES
    ]
    return Section(
        title=TITLES["memory"],
        command=command("memory"),
        figures=(*figures, *([] if is_quick else estimate_large())),
        notes=(
            "Both sides are counted by the same tracker on a CPU, so that this shows that fake tensors need what real"
            " ones do. A GPU's allocator, context and NCCL buffers are in neither. Of a pipeline's processes, the one"
            " that needs the most counts.",
        ),
    )


def compare(name: str, config: dict[str, Any], task: str, values: dict[str, Any]) -> Figure:
    """How far the estimate is from the measured peak."""
    workload = workload_document(config, task, LENGTH)
    settings = parse_settings({**values, "batch_size_per_device": BATCH})
    estimated = estimate_memory(parse_workload(workload), settings, model_path=None)
    measured = measure_memory(parse_workload(workload), settings, model_path=None)
    difference = abs(estimated.peak_bytes / measured.peak_bytes - 1)
    return Figure(
        name=f"{name}: estimate {gib(estimated):.3f} GiB, measured {gib(measured):.3f} GiB; difference",
        value=difference,
        unit="",
        budget=at_most(MOST_DIFFERENCE),
    )


def estimate_large() -> list[Figure]:
    """Llama 8B over 8 devices, which no machine here could hold."""
    began = time.monotonic()
    settings = parse_settings({"instance": EIGHT, "strategy": "fsdp", "precision": "bf16"})
    workload = parse_workload(workload_document(BILLION_8, "causal-lm", LONG))
    estimated = estimate_memory(workload, settings, model_path=None)
    name = f"Llama 8B, fsdp over 8, bf16, {LONG:,} tokens"
    return [
        Figure(name=f"{name}: estimated peak of a device", value=gib(estimated), unit="GiB"),
        Figure(name=f"{name}: time of the estimate", value=time.monotonic() - began, unit="s"),
    ]


def workload_document(config: dict[str, Any], task: str, length: int) -> dict[str, Any]:
    return {
        "task": task,
        "examples": 1000,
        "model": {"config": config},
        "dataset": {"format": "synthetic"},
        "sequence_length": length,
    }


def gib(estimate: MemoryEstimate) -> float:
    return estimate.peak_bytes / 2**30
