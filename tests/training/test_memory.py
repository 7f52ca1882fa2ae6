"""Memory estimates: fake tensors need what real ones do, counted by the same tracker, and by
hand.
"""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch

from tests.nightly import NIGHTLY
from tests.training.forked import run_group
from tests.training.shape_watch import watched_shapes
from traindyno.core.documents.plain import plain_values
from traindyno.core.planning.memory import finding_of
from traindyno.core.planning.peak_lines import MemoryEstimate, PeakLines, with_vocabulary
from traindyno.core.run.settings import Settings
from traindyno.core.run.workload import Dataset, Tokenizer, Workload
from traindyno.core.suite.choices import DatasetFormat
from traindyno.core.suite.suite_file import parse_part
from training.memory.__main__ import answer
from training.memory.estimate import (
    estimate_lines,
    estimate_memory,
    of_each_process,
    watch_steps,
)
from training.memory.tracker import MemoryTracker
from training.process.process_group import end_process_group, read_topology

ONE, FOUR = "ml.g5.xlarge", "ml.g5.12xlarge"
STEPS = (4, 4)  # batches of two steps
GPT2 = {
    "model_type": "gpt2",
    "n_embd": 64,
    "n_layer": 3,
    "n_head": 4,
    "vocab_size": 500,
    "n_positions": 32,
}
SIZES = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "vocab_size": 500,
}
LLAMA = {"model_type": "llama", **SIZES, "num_key_value_heads": 4}
BERT = {"model_type": "bert", **SIZES}
CASES: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "GPT-2, one device": (
        GPT2,
        "causal-lm",
        {"instance": ONE, "strategy": "single", "gradient_clip_norm": 1.0},
    ),
    "GPT-2, ddp over 4": (
        GPT2,
        "causal-lm",
        {"instance": FOUR, "strategy": "ddp", "gradient_accumulation_steps": 3},
    ),
    "GPT-2, fsdp over 4": (
        GPT2,
        "causal-lm",
        {"instance": FOUR, "strategy": "fsdp", "precision": "bf16"},
    ),
    "Llama, fsdp over 8, checkpointing": (
        LLAMA,
        "causal-lm",
        {
            "instance": FOUR,
            "instance_count": 2,
            "strategy": "fsdp",
            "activation_checkpointing": True,
        },
    ),
    "Llama, tensor over 4": (
        LLAMA,
        "causal-lm",
        {"instance": FOUR, "strategy": "tensor", "precision": "bf16"},
    ),
    "Llama, an adapter beside 4 bits": (
        LLAMA,
        "causal-lm",
        {
            "instance": ONE,
            "strategy": "single",
            "precision": "bf16",
            "base_weights": "nf4",
            "adapter": {"rank": 4},
        },
    ),
    "BERT, zero1 over 4": (
        BERT,
        "masked-lm",
        {"instance": FOUR, "strategy": "zero1", "precision": "fp16"},
    ),
    "BERT, interleaved pipeline, checkpointing, accumulation": (
        {**BERT, "num_hidden_layers": 4},
        "masked-lm",
        {
            "instance": FOUR,
            "strategy": "pipeline",
            "pipeline_schedule": "interleaved",
            "pipeline_degree": 2,
            "micro_batches": 2,
            "activation_checkpointing": True,
            "gradient_accumulation_steps": 3,
            "gradient_clip_norm": 1.0,
        },
    ),
    "BERT, classification": (
        BERT,
        "sequence-classification",
        {"instance": ONE, "strategy": "single"},
    ),
}
# A real stage of a tensor group needs a block of 512 bytes more; four real processes are compared
# below.
COMPOSED: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "Llama, pipeline x tensor over 4": (
        LLAMA,
        "causal-lm",
        {
            "instance": FOUR,
            "strategy": "mesh",
            "pipeline_degree": 2,
            "tensor_degree": 2,
            "micro_batches": 2,
            "pipeline_schedule": "1f1b",
            "precision": "bf16",
        },
    )
}


def workload_of(config: dict[str, Any], task: str, *, sequence_length: int = 32) -> Workload:
    return parse_part(
        {
            "task": task,
            "examples": 100,
            "model": {"config": config},
            "dataset": {"format": "synthetic"},
            "sequence_length": sequence_length,
        },
        Workload,
    )


def settings_of(**values: Any) -> Settings:
    return parse_part({"batch_size_per_device": 4, **values}, Settings)


def asked(name: str) -> tuple[Workload, Settings]:
    config, task, values = (CASES | COMPOSED)[name]
    return workload_of(config, task), settings_of(**values)


def lines_of(workload: Workload, settings: Settings) -> PeakLines:
    lines = estimate_lines(workload, settings)
    assert lines is not None
    return lines


@cache
def estimated_case(name: str) -> MemoryEstimate:
    return estimate_memory(*asked(name))


@pytest.mark.parametrize("name", CASES)
def test_fake_tensors_need_the_same_as_real_ones(name: str) -> None:
    workload, settings = asked(name)
    estimated = estimated_case(name)
    assert estimated.activation_bytes > 0
    with watched_shapes() as shapes:
        watched = of_each_process(
            settings, lambda each: watch_steps(workload, settings, each, STEPS)
        )
    measured = max((each.estimate for each in watched), key=lambda each: each.peak_bytes)
    assert estimated == measured
    assert len(shapes.seen) >= 8
    assert shapes.wrong == set()


@pytest.mark.parametrize("batch", [1, 2])
def test_packed_conversations_have_a_mask_for_the_rest_of_their_sequences(batch: int) -> None:
    settings = settings_of(instance=ONE, strategy="single", batch_size_per_device=batch)
    texts, chats = (
        replace(
            workload_of(LLAMA, "causal-lm", sequence_length=256),
            dataset=Dataset(path="data", format=kind),
        )
        for kind in (DatasetFormat.JSON, DatasetFormat.CHAT)
    )
    estimates = [estimate_memory(workload, settings) for workload in (texts, chats)]
    assert estimates[1].peak_bytes - estimates[0].peak_bytes >= batch * 256 * 256
    assert lines_of(chats, settings).at(batch) == estimates[1]


def test_single_uses_one_device_of_an_instance() -> None:
    workload = workload_of(GPT2, "causal-lm")
    one, four = (
        estimate_memory(workload, settings_of(instance=instance, strategy="single"))
        for instance in (ONE, FOUR)
    )
    assert one == four


def test_parameters_and_optimizer_state_by_hand() -> None:
    # One layer: 4 x 64^2 attention + 3 x 64 x 128 of the MLP + 2 norms of 64; embeddings and head 2
    # x 500 x 64, a norm.
    count = 3 * (4 * 64**2 + 3 * 64 * 128 + 2 * 64) + 2 * 500 * 64 + 64
    estimated = estimate_memory(
        workload_of(LLAMA, "causal-lm"),
        settings_of(instance=ONE, strategy="single"),
    )
    # fp32: 4 bytes each, two of AdamW's; each tensor's last block of 512 bytes may be partly used
    tensors = 3 * 9 + 3
    assert 0 <= estimated.parameter_bytes - 4 * count <= 512 * tensors
    # AdamW's state: two tensors of each parameter's size, and a step counter in a block of its own
    assert estimated.optimizer_bytes == 2 * estimated.parameter_bytes + 512 * tensors


def test_the_tracker_counts_a_storage_once_and_until_it_is_freed() -> None:
    with MemoryTracker() as tracker:
        first = torch.empty(1024, 256)  # 1 MiB
        view = first[1:].t()
        second = first + 1
        assert tracker.levels[-1] == 2 * 2**20
        del first, second
        assert tracker.levels[-1] == 2**20, "the view keeps the first storage alive"
        view.untyped_storage().resize_(0)
        assert tracker.levels[-1] == 0
        assert max(tracker.levels) == 2 * 2**20


def test_a_cell_with_too_large_a_state_fits_with_no_batch() -> None:
    wide = {**LLAMA, "hidden_size": 8192, "intermediate_size": 32_768, "num_attention_heads": 64}
    workload = workload_of({**wide, "num_key_value_heads": 64, "num_hidden_layers": 2}, "causal-lm")
    settings = settings_of(instance=FOUR, strategy="ddp", batch_size_per_device=1)
    finding = finding_of(settings, lines=lines_of(workload, settings), whole=None)
    # 2 x (4 x 8192^2 + 3 x 8192 x 32768) = 2.1 billion parameters x 16 bytes = 34 GB: more than an
    # A10G's 24 GB
    assert finding.estimate is not None
    assert finding.estimate.peak_bytes > 34 * 10**9
    assert finding.largest_batch == 0


def test_an_untrained_tokenizer_decides_the_embeddings() -> None:
    without = {name: value for name, value in GPT2.items() if name != "vocab_size"}
    settings = settings_of(instance=ONE, strategy="single")
    workload = replace(
        workload_of(without, "causal-lm"), tokenizer=Tokenizer(train_vocabulary_size=500)
    )
    named = estimate_memory(workload_of(GPT2, "causal-lm"), settings)
    assert estimate_memory(with_vocabulary(workload), settings) == named


CUT = {"pipeline_degree": 2, "micro_batches": 4, "pipeline_schedule": "1f1b"}
COMPOSITIONS: dict[str, dict[str, Any]] = {"pipeline x tensor": {**CUT, "tensor_degree": 2}}
if NIGHTLY:
    COMPOSITIONS |= {
        "pipeline x shard": {**CUT, "shard_degree": 2},
        "shard x tensor": {"shard_degree": 2, "tensor_degree": 2},
    }
    COMPOSITIONS |= {
        f"{name}, {schedule}": {**COMPOSITIONS[name], "pipeline_schedule": schedule}
        for name in ("pipeline x tensor", "pipeline x shard")
        for schedule in ("gpipe", "interleaved")
    }
    COMPOSITIONS |= {
        f"{name}, bf16, checkpointing, accumulation, clipping": {
            **values,
            "precision": "bf16",
            "activation_checkpointing": True,
            "gradient_accumulation_steps": 2,
            "gradient_clip_norm": 1.0,
        }
        for name, values in list(COMPOSITIONS.items())
    }
# Two replicas of two stages.
PIPELINES: dict[str, dict[str, Any]] = {"pipeline, 1f1b, bf16": {**CUT, "precision": "bf16"}}
if NIGHTLY:
    PIPELINES |= {
        f"pipeline, {each}": {**CUT, "pipeline_schedule": each} for each in ("gpipe", "interleaved")
    }
# A real process also holds messages until they are sent, and a block's gradients until they are
# reduced.
MOST_IN_FLIGHT = 0.05


def composed(name: str) -> tuple[Workload, Settings]:
    """Tied embeddings, which the first and the last stage hold."""
    if name in PIPELINES:
        workload = workload_of({**GPT2, "n_layer": 5}, "causal-lm")
        return workload, settings_of(instance=FOUR, strategy="pipeline", **PIPELINES[name])
    config = {**LLAMA, "num_hidden_layers": 5, "tie_word_embeddings": "pipeline" in name}
    return workload_of(config, "causal-lm"), settings_of(
        instance=FOUR, strategy="mesh", **COMPOSITIONS[name]
    )


def measure_compositions(names: list[str]) -> list[MemoryEstimate]:
    """Measure this process of a real group of four."""
    measured = [watch_steps(*composed(name), read_topology(), STEPS).estimate for name in names]
    end_process_group()
    return measured


def test_the_estimate_of_a_composition_is_the_need_of_its_largest_real_process() -> None:
    names = [*COMPOSITIONS, *PIPELINES]
    by_rank = run_group(measure_compositions, names, processes=4)
    for name, of_ranks in zip(names, zip(*by_rank, strict=True), strict=True):
        estimated = estimate_memory(*composed(name))
        largest = max(of_ranks, key=lambda each: each.peak_bytes)
        assert replace(estimated, peak_bytes=0) == replace(largest, peak_bytes=0), name
        # The first stage of a pipeline holds one message of 1 x 32 x 64 numbers; a process of two
        # stages more.
        is_plain = name in PIPELINES and "interleaved" not in name
        reach = (
            32 * 64 * 4
            if is_plain
            else (0.02 if name in PIPELINES else MOST_IN_FLIGHT) * largest.peak_bytes
        )
        assert abs(largest.peak_bytes - estimated.peak_bytes) <= reach, name
        stages = {replace(each, peak_bytes=0) for each in of_ranks}
        assert len(stages) == (2 if "pipeline" in name else 1), name


def test_a_composition_of_degrees_holds_the_states_part_by_hand() -> None:
    """Stage, tensor group and shards divide what they hold: the first of two stages has the
    embedding and two blocks of four, the tensor group halves matrices, and shards halve all.
    """
    config = {**LLAMA, "num_hidden_layers": 4}
    degrees = {"pipeline_degree": 2, "shard_degree": 2, "tensor_degree": 2, "micro_batches": 2}
    settings = settings_of(instance=FOUR, instance_count=2, strategy="mesh", **degrees)
    estimated = estimate_memory(workload_of(config, "causal-lm"), settings)
    matrices, norms, embedding = 4 * 64**2 + 3 * 64 * 128, 2 * 64, 500 * 64
    first = (
        2 * (matrices // 2 + norms) + embedding
    ) // 2  # the last stage has the head instead, and a norm of 64
    tensors = 2 * 9 + 2
    assert 0 <= estimated.parameter_bytes - 4 * first <= 512 * tensors
    assert 0 <= estimated.optimizer_bytes - 2 * estimated.parameter_bytes <= 512 * tensors


def test_an_impossible_estimate_says_why() -> None:
    settings = settings_of(instance=FOUR, strategy="pipeline", micro_batches=3)
    request = {"find": "lines", "settings": plain_values(settings)}
    answered = answer(workload_of(GPT2, "causal-lm"), request)
    assert answered["why_unknown"].startswith(
        "the estimate failed: strategy pipeline asks for 4 stages"
    )
