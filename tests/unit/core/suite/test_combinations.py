"""Which settings do not go together, and why."""

from dataclasses import replace
from typing import Any

import pytest

from tests.sentences import Snapshot
from tests.unit.suites import script_document, small_document
from traindyno.core.run.settings import Settings
from traindyno.core.run.workload import Workload
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.checks.combinations import find_impossible
from traindyno.core.suite.choices import Task
from traindyno.core.suite.suite_file import parse_part

BUILT_IN = parse_part({**small_document()["workload"], "model": "gpt2"}, Workload)
SCRIPT = parse_part(script_document()["workload"], Workload)


UNEVEN = {"padding": "longest", "packing": False}
PIPELINED = {
    "strategy": "mesh",
    "pipeline_degree": 2,
    "micro_batches": 2,
    "batch_size_per_device": 4,
}


def reasons(settings: dict[str, Any], workload: Any = BUILT_IN) -> list[str]:
    cell = Cell(
        cell_id="0",
        label="cell",
        settings=parse_part({"instance": "ml.p4d.24xlarge", **settings}, Settings),
    )
    return [f"{problem.field}: {problem.reason}" for problem in find_impossible(cell, workload)]


@pytest.mark.parametrize(
    "settings",
    [
        {"strategy": "ddp", "instance_count": 16},
        {"strategy": "smddp", "image": "mine:1"},
        {"strategy": "smddp", "instance": "ml.p3dn.24xlarge", "image": "mine:1"},
        {"strategy": "fsdp", "shard_scope": "hybrid", "instance_count": 2, "compiler": "inductor"},
        {"strategy": "tensor", "tensor_degree": 8},
        {
            "strategy": "tensor",
            "tensor_plan": {"colwise": ["h.*.mlp.c_fc"], "rowwise": ["h.*.mlp.c_proj"]},
        },
        {"strategy": "mesh", "tensor_degree": 2, "shard_degree": 2},
        {
            "strategy": "pipeline",
            "pipeline_degree": 4,
            "batch_size_per_device": 8,
            "micro_batches": 4,
        },
        {
            "strategy": "pipeline",
            "pipeline_degree": 2,
            "pipeline_schedule": "interleaved",
            "batch_size_per_device": 8,
            "micro_batches": 4,
        },
        {
            "strategy": "pipeline",
            "pipeline_degree": 4,
            "pipeline_schedule": "interleaved",
            "batch_size_per_device": 9,
            "micro_batches": 3,
        },
        {"strategy": "ddp", "instance": "ml.trn1.32xlarge", "compiler": "xla"},
        {
            "strategy": "fsdp",
            "instance": "ml.trn2.48xlarge",
            "compiler": "neuron",
            "image": "mine:1",
        },
        {
            "strategy": "ddp",
            "instance": "ml.trn2.48xlarge",
            "compiler": "neuron",
            "image": "mine:1",
        },
        {"strategy": "ddp", "instance": "local.cpu", "instance_count": 2},
        {"strategy": "ddp", "instance": "local.cpu", "compiler": "xla"},
        {"precision": "fp16"},
        {"document_masking": True, "strategy": "fsdp"},
        {"activation_offloading": True, "activation_checkpointing": True},
        {"precision": "bf16", "instance": "ml.m5.xlarge"},
        # batches of unequal shapes
        {**UNEVEN, **PIPELINED, "shard_degree": 4, "padding": "max-length"},
        {**UNEVEN, **PIPELINED, "shard_degree": 1},
        {**UNEVEN, "strategy": "mesh", "shard_degree": 4, "tensor_degree": 2},
        {**UNEVEN, "strategy": "fsdp"},
    ],
)
def test_possible_combinations_are_not_refused(settings: dict[str, Any]) -> None:
    assert reasons(settings) == []


@pytest.mark.parametrize(
    "settings",
    [
        {"strategy": "smddp", "instance": "ml.g5.48xlarge"},
        {"precision": "fp16", "instance": "ml.m5.xlarge"},
        {"base_weights": "nf4"},
        {"base_weights": "nf4", "adapter": {"rank": 8}, "strategy": "fsdp"},
        {"base_weights": "nf4", "adapter": {"rank": 8}, "compiler": "inductor"},
        {"base_weights": "bf16", "adapter": {"rank": 8}},
        {"loss_chunks": 64, "strategy": "pipeline", "pipeline_degree": 4},
        {"adapter": {"rank": 8}, "strategy": "tensor"},
        {"activation_offloading": True, "instance": "local.cpu"},
        {"strategy": "tensor", "instance": "ml.g5.xlarge"},
        {
            "strategy": "pipeline",
            "pipeline_schedule": "1f1b",
            "batch_size_per_device": 4,
            "micro_batches": 4,
        },
        {"strategy": "tensor", "tensor_degree": 3},
        {"strategy": "tensor", "tensor_plan": {}},
        {"strategy": "mesh", "shard_degree": 3, "tensor_degree": 2},
        {
            "strategy": "mesh",
            "shard_degree": 2,
            "tensor_degree": 2,
            "pipeline_degree": 1,
            "replicate_degree": 1,
        },
        {"strategy": "mesh", "micro_batches": 2, "batch_size_per_device": 2},
        {"strategy": "mesh", "shard_degree": 8, "pipeline_schedule": "1f1b"},
        {"strategy": "mesh", "shard_degree": 8, "tensor_plan": {"colwise": ["h.*.mlp.c_fc"]}},
        {"tensor_degree": 2},
        {
            "strategy": "pipeline",
            "pipeline_degree": 2,
            "batch_size_per_device": 8,
            "micro_batches": 3,
        },
        {
            "strategy": "pipeline",
            "pipeline_degree": 4,
            "pipeline_schedule": "interleaved",
            "batch_size_per_device": 9,
            "micro_batches": 9,
        },
        {"document_masking": True, "packing": False},
        {"document_masking": True, "strategy": "pipeline"},
        {"shard_scope": "hybrid"},
        {
            "instance": "local.cpu",
            "instance_count": 4,
            "strategy": "fsdp",
            "shard_scope": "hybrid",
        },
        {"compiler": "neuron"},
        {"instance": "ml.trn1.32xlarge"},
        {"instance": "ml.trn1.32xlarge", "compiler": "xla", "strategy": "fsdp"},
        {"instance": "ml.p3.16xlarge"},
        {"instance": "local.gpu", "instance_count": 2},
        {"strategy": "single", "instance_count": 2},
        {"strategy": "smddp"},
        {"instance": "ml.trn2.48xlarge", "compiler": "neuron"},
    ],
)
def test_impossible_combinations_have_their_reason(
    snapshot: Snapshot, settings: dict[str, Any]
) -> None:
    snapshot(reasons(settings))


def test_the_training_compilers_images_run_scripts_only(snapshot: Snapshot) -> None:
    on_gpu = {"compiler": "xla", "strategy": "ddp"}
    assert reasons(on_gpu, SCRIPT) == []
    snapshot(reasons({**on_gpu, "instance": "ml.g6.xlarge"}, SCRIPT)[0])
    snapshot(reasons(on_gpu)[0])


def test_a_script_answers_for_its_own_parallelism() -> None:
    assert reasons({"strategy": "tensor"}, SCRIPT) == []
    assert reasons({"strategy": "smddp", "instance": "ml.g5.xlarge"}, SCRIPT) != []


def test_a_models_config_must_offer_the_cut_parts(snapshot: Snapshot) -> None:
    small = {"model_type": "gpt2", "n_layer": 6, "n_head": 12}
    workload = parse_part({**small_document()["workload"], "model": {"config": small}}, Workload)
    cut = {"strategy": "pipeline", "batch_size_per_device": 8, "micro_batches": 8}
    assert reasons({**cut, "pipeline_degree": 4}, workload) == []
    snapshot(reasons({**cut, "pipeline_degree": 8}, workload))
    snapshot(reasons({**cut, "pipeline_degree": 4, "pipeline_schedule": "interleaved"}, workload))
    assert reasons({"strategy": "tensor", "tensor_degree": 4}, workload) == []
    snapshot(reasons({"strategy": "tensor"}, workload))


def test_a_model_given_by_name_is_not_checked() -> None:
    named = parse_part(
        {**small_document()["workload"], "model": "meta-llama/Llama-3.2-1B"}, Workload
    )
    assert reasons({"strategy": "pipeline"}, named) == []


def test_document_masking_needs_room_for_the_check_before_the_first_step() -> None:
    refused = [
        reasons({"document_masking": True}, replace(BUILT_IN, sequence_length=length))
        for length in (15, 16)
    ]
    assert [len(told) for told in refused] == [1, 0]
    assert "document_masking is tried on 16 tokens" in refused[0][0]


@pytest.mark.parametrize("padding", ["longest", "bucket"])
def test_shards_of_stages_need_batches_of_one_shape(padding: str) -> None:
    sharded = {**PIPELINED, "shard_degree": 4, "padding": padding}
    classified = replace(BUILT_IN, task=Task.SEQUENCE_CLASSIFICATION)
    expected = [
        f"padding: padding {padding} gives processes batches of different lengths, for which the "
        "shards of a pipeline's stages would wait for each other: expected padding max-length, "
        "packed texts, shard_degree 1 or pipeline_degree 1"
    ]
    assert reasons({**sharded, "packing": False}) == expected
    assert reasons(sharded, classified) == expected  # packing has no effect on classification
    assert reasons(sharded) == []
