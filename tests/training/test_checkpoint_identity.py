"""The identity of a checkpoint is the same in every version, or the attempts of a run could not continue each other."""

import pytest

from tests.training.run_documents import run_document
from traindyno.core.suite.suite_file import parse_measurement, parse_settings, parse_workload
from training.checkpoints.identity import Identity, difference, identity_of
from training.process.run_settings import RunSettings
from training.process.topology import Topology

PIPELINE = {
    "strategy": "pipeline",
    "pipeline_degree": 4,
    "pipeline_schedule": "1f1b",
    "micro_batches": 4,
    "precision": "bf16",
    "gradient_accumulation_steps": 3,
    "gradient_clip_norm": 1.0,
}


def run_of(settings: dict[str, object], *, is_streamed: bool = False) -> RunSettings:
    dataset = {"path": "s3://bucket/data", "input_mode": "stream"}
    document = run_document(settings=settings, workload={"dataset": dataset} if is_streamed else None)
    return RunSettings(
        run_id="run",
        workload=parse_workload(document["workload"]),
        settings=parse_settings(document["settings"]),
        measurement=parse_measurement(document["measurement"]),
    )


def test_the_settings_in_an_identity() -> None:
    identity = identity_of(run_of(PIPELINE), Topology(world_size=8))
    assert {name: value for name, value in identity.items() if not name.startswith("workload.")} == {
        "optimizer": "adamw",
        "weight_decay": 0.0,
        "gradient_clip_norm": 1.0,
        "seed": 0,
        "packing": True,
        "document_masking": False,
        "dropout": 0.0,
        "precision": "bf16",
        "strategy": "pipeline",
        # 2 replicas x 3 passes x 4 samples
        "samples_per_step": 24,
    }


@pytest.mark.parametrize(("name", "value"), [("precision", "fp32"), ("strategy", "ddp")])
def test_another_form_of_the_weights_is_another_run(name: str, value: str) -> None:
    topology = Topology(world_size=4)
    given = {**PIPELINE, "gradient_accumulation_steps": 1}
    found, expected = (identity_of(run_of(settings), topology) for settings in (given, {**given, name: value}))
    assert f"{name} {given[name]!r}, where this run has {value!r}" in str(difference(found, expected))


MESH = {"strategy": "mesh", "tensor_degree": 2, "pipeline_degree": 2, "micro_batches": 4}
PLAN = {"colwise": ["layers.*.mlp.up_proj"], "rowwise": ["layers.*.mlp.down_proj"]}
OTHERS: list[dict[str, object]] = [
    {**MESH, "pipeline_schedule": "interleaved"},
    {**MESH, "pipeline_degree": 1, "micro_batches": 1, "batch_size_per_device": 2},
    {"strategy": "fsdp", "batch_size_per_device": 1},
    {"strategy": "tensor"},
    {"strategy": "pipeline", "pipeline_degree": 4, "micro_batches": 4},
]


@pytest.mark.parametrize("other", OTHERS)
def test_another_composition_resumes(other: dict[str, object]) -> None:
    composed, found = (identity_of(run_of(given), Topology(world_size=4)) for given in (MESH, other))
    assert difference(composed, found) is None
    assert difference(found, composed) is None


def test_another_plan_does_not_resume() -> None:
    composed, other = (
        identity_of(run_of(given), Topology(world_size=4)) for given in (MESH, {**MESH, "tensor_plan": PLAN})
    )
    assert difference(composed, other) == f"tensor_plan None, where this run has {other['tensor_plan']!r}"


def test_a_checkpoint_of_an_earlier_version_names_what_it_no_longer_fixes() -> None:
    identity = identity_of(run_of(PIPELINE), Topology(world_size=8))
    earlier = {**identity, "pipeline_degree": 4, "pipeline_schedule": "1f1b", "processes": 8}
    assert difference(earlier, identity) is None


CONVERTED = "converted for tensor_degree"


@pytest.mark.parametrize("other", [*OTHERS[:3], OTHERS[4]])
def test_layers_that_an_earlier_version_converted_stay_with_tensor(other: dict[str, object]) -> None:
    topology = Topology(world_size=4)
    tensor, composed = identity_of(run_of({"strategy": "tensor"}), topology), identity_of(run_of(other), topology)
    earlier = {**tensor, "processes": 4}
    assert str(difference(earlier, composed)).startswith("strategy 'tensor', where this run has")
    assert difference(earlier, tensor) is None
    assert difference(earlier, {**tensor, CONVERTED: 4}) == f"{CONVERTED} None, where this run has 4"


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
    assert difference(fsdp, mesh) == "batch_size 1, where this run has 2; replicas 4, where this run has 2"
    assert difference(mesh, tensor) == "batch_size 2, where this run has 4; replicas 2, where this run has 1"
    shared = {"tensor_degree": 2, "batch_size_per_device": 2}
    assert difference(streamed({"strategy": "tensor", **shared}), mesh) is None
    accumulated = streamed({"strategy": "ddp", "batch_size_per_device": 2, "gradient_accumulation_steps": 2})
    assert difference(streamed({"strategy": "ddp"}), accumulated) == "batch_size 4, where this run has 2"


def before_replicas(identity: Identity) -> Identity:
    return {name: value for name, value in identity.items() if name not in ("replicas", "batch_size")}


@pytest.mark.parametrize("settings", [{"strategy": "ddp"}, {"strategy": "fsdp"}, MESH, PIPELINE])
def test_a_streamed_run_of_an_earlier_version_resumes_as_itself(settings: dict[str, object]) -> None:
    identity = streamed(settings)
    named = {"pipeline_schedule": "1f1b"} if settings["strategy"] == "pipeline" else {}
    assert difference({**before_replicas(identity), **named}, identity) is None


def test_a_streamed_run_of_an_earlier_version_is_no_other_composition() -> None:
    fsdp, mesh = streamed({"strategy": "fsdp", "batch_size_per_device": 1}), streamed(MESH)
    assert "strategy 'fsdp', where this run has 'mesh'" in str(difference(before_replicas(fsdp), mesh))
    tensor = {"strategy": "tensor", "tensor_degree": 2}
    alone = streamed({"strategy": "tensor", "batch_size_per_device": 8})
    assert difference(before_replicas(streamed(tensor)), alone) == "tensor_degree 2, where this run has None"


@pytest.mark.parametrize("strategy", [None, "unheard-of"])
def test_a_marker_of_no_known_strategy_is_refused(strategy: str | None) -> None:
    identity = identity_of(run_of(MESH), Topology(world_size=4))
    found = {name: value for name, value in identity.items() if name != "strategy"}
    found |= {"strategy": strategy} if strategy else {}
    assert difference(found, identity) == f"strategy {strategy!r}, where this run has 'mesh'"
