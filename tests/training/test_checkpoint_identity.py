"""The identity of a checkpoint is the same in every version, or the attempts of a run could not
continue each other.
"""

import pytest

from tests.training.run_documents import parse_run, run_document
from training.checkpoints.slots import Identity, difference, identity_of
from training.process.process_group import Topology
from training.process.run_settings import RunSettings

PIPELINE = {
    "strategy": "pipeline",
    "pipeline_degree": 4,
    "pipeline_schedule": "1f1b",
    "micro_batches": 4,
    "precision": "bf16",
    "gradient_accumulation_steps": 3,
    "gradient_clip_norm": 1.0,
}
MESH = {"strategy": "mesh", "tensor_degree": 2, "pipeline_degree": 2, "micro_batches": 4}
PLAN = {"colwise": ["layers.*.mlp.up_proj"], "rowwise": ["layers.*.mlp.down_proj"]}
OTHERS: list[dict[str, object]] = [
    {**MESH, "pipeline_schedule": "interleaved"},
    {**MESH, "pipeline_degree": 1, "micro_batches": 1, "batch_size_per_device": 2},
    {"strategy": "fsdp", "batch_size_per_device": 1},
    {"strategy": "tensor"},
    {"strategy": "pipeline", "pipeline_degree": 4, "micro_batches": 4},
]


def run_of(settings: dict[str, object], *, is_streamed: bool = False) -> RunSettings:
    dataset = {"path": "s3://bucket/data", "input_mode": "stream"}
    document = run_document(
        settings=settings, workload={"dataset": dataset} if is_streamed else None
    )
    return parse_run(document)


def test_the_settings_in_an_identity() -> None:
    identity = identity_of(run_of(PIPELINE), Topology(world_size=8))
    assert {
        name: value for name, value in identity.items() if not name.startswith("workload.")
    } == {
        "optimizer": "adamw",
        "lr_schedule": "constant",
        "lr_warmup_steps": 0.0,
        "weight_decay": 0.0,
        "gradient_clip_norm": 1.0,
        "seed": 0,
        "packing": True,
        "document_masking": False,
        "dropout": 0.0,
        "precision": "bf16",
        "base_weights": "fp32",
        "strategy": "pipeline",
        # 2 replicas x 3 passes x 4 samples
        "samples_per_step": 24,
    }


@pytest.mark.parametrize(
    "schedule", [{}, {"lr_warmup_steps": 9}, {"lr_warmup_steps": 0.1}, {"lr_schedule": "cosine"}]
)
def test_a_longer_run_resumes_with_the_same_learning_rates(
    schedule: dict[str, object],
) -> None:
    short, long = (
        identity_of(
            parse_run(run_document(settings=schedule, workload={"examples": examples})), Topology()
        )
        for examples in (400, 800)
    )
    is_of_the_whole = (
        schedule.get("lr_schedule") == "cosine" or schedule.get("lr_warmup_steps") == 0.1
    )
    assert difference(short, long) == (
        "workload.examples 400, where this run has 800" if is_of_the_whole else None
    )


@pytest.mark.parametrize(("name", "value"), [("precision", "fp32"), ("strategy", "ddp")])
def test_another_form_of_the_weights_is_another_run(name: str, value: str) -> None:
    topology = Topology(world_size=4)
    given = {**PIPELINE, "gradient_accumulation_steps": 1}
    changed, expected = (
        identity_of(run_of(settings), topology) for settings in (given, {**given, name: value})
    )
    assert f"{name} {given[name]!r}, where this run has {value!r}" in str(
        difference(changed, expected)
    )


@pytest.mark.parametrize("other", OTHERS)
def test_another_composition_resumes(other: dict[str, object]) -> None:
    composed, changed = (
        identity_of(run_of(given), Topology(world_size=4)) for given in (MESH, other)
    )
    assert difference(composed, changed) is None
    assert difference(changed, composed) is None


def test_another_plan_does_not_resume() -> None:
    composed, other = (
        identity_of(run_of(given), Topology(world_size=4))
        for given in (MESH, {**MESH, "tensor_plan": PLAN})
    )
    assert (
        difference(composed, other)
        == f"tensor_plan None, where this run has {other['tensor_plan']!r}"
    )


def streamed(settings: dict[str, object]) -> Identity:
    return identity_of(run_of(settings, is_streamed=True), Topology(world_size=4))


def test_streamed_data_resumes_only_with_the_same_readers() -> None:
    # Four samples a step each, of 4 × 1, 2 × 2, 1 × 4 replicas and samples.
    fsdp, mesh, tensor = (
        streamed({**given, "batch_size_per_device": 4 // replicas})
        for given, replicas in (
            ({"strategy": "fsdp"}, 4),
            ({"strategy": "mesh", "tensor_degree": 2}, 2),
            ({"strategy": "tensor"}, 1),
        )
    )
    assert (
        difference(fsdp, mesh)
        == "batch_size 1, where this run has 2; replicas 4, where this run has 2"
    )
    assert (
        difference(mesh, tensor)
        == "batch_size 2, where this run has 4; replicas 2, where this run has 1"
    )
    shared = {"tensor_degree": 2, "batch_size_per_device": 2}
    assert difference(streamed({"strategy": "tensor", **shared}), mesh) is None
    accumulated = streamed(
        {"strategy": "ddp", "batch_size_per_device": 2, "gradient_accumulation_steps": 2}
    )
    assert (
        difference(streamed({"strategy": "ddp"}), accumulated)
        == "batch_size 4, where this run has 2"
    )


@pytest.mark.parametrize("strategy", [None, "unheard-of"])
def test_a_marker_of_no_known_strategy_is_refused(strategy: str | None) -> None:
    identity = identity_of(run_of(MESH), Topology(world_size=4))
    without_strategy = {name: value for name, value in identity.items() if name != "strategy"}
    without_strategy |= {"strategy": strategy} if strategy else {}
    assert (
        difference(without_strategy, identity)
        == f"strategy {strategy!r}, where this run has 'mesh'"
    )
