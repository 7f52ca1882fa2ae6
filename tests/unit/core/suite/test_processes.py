"""Processes, replicas and batches, by hand."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import examples
from traindyno.core.run.processes import (
    Degrees,
    TensorDivision,
    degrees_of,
    given_degrees,
    global_batch_size,
    nearest_degrees,
    planned_batch_size,
    planned_learning_rate,
    replica_count,
    scaled_learning_rate,
    stage_counts,
    stage_ranks,
    tensor_divisions,
    world_size,
)
from traindyno.core.run.settings import LearningRate, Settings, TensorLayers
from traindyno.core.suite.choices import LearningRateScaling, PipelineSchedule, ShardScope, Strategy

P4D = Settings(
    instance="ml.p4d.24xlarge", instance_count=2, strategy=Strategy.DDP, batch_size_per_device=4
)
UNKNOWN = replace(P4D, instance="ml.unheard.of")
NAMES = st.sampled_from(["pipeline", "replicate", "shard", "tensor"])


def settings(**changes: Any) -> Settings:
    return replace(P4D, **changes)


def test_a_job_has_a_process_for_each_device() -> None:
    assert world_size(P4D) == 16
    assert world_size(UNKNOWN) is None
    alone = settings(strategy=Strategy.SINGLE, instance_count=1)
    assert (world_size(alone), planned_batch_size(alone)) == (1, 4)


def test_a_replica_takes_the_processes_of_its_degree_or_all() -> None:
    assert replica_count(P4D, 16) == 16
    assert replica_count(settings(strategy=Strategy.TENSOR), 16) == 1
    assert replica_count(settings(strategy=Strategy.TENSOR, tensor_degree=4), 16) == 4
    assert replica_count(settings(strategy=Strategy.TENSOR, tensor_degree=32), 16) == 0


def test_the_global_batch_counts_devices_and_accumulated_steps() -> None:
    # 4 samples x 3 steps x 16 replicas
    assert global_batch_size(settings(gradient_accumulation_steps=3), 16) == 192
    assert planned_batch_size(P4D) == 64
    assert planned_batch_size(UNKNOWN) is None


def test_the_learning_rate_scales_with_the_global_batch() -> None:
    scaled = LearningRate(
        base=0.001, reference_batch_size=32, scale_with=LearningRateScaling.GLOBAL_BATCH
    )
    assert scaled_learning_rate(scaled, 64) == pytest.approx(0.002)
    assert planned_learning_rate(settings(learning_rate=scaled)) == pytest.approx(0.002)
    assert planned_learning_rate(replace(UNKNOWN, learning_rate=scaled)) is None
    fixed = replace(scaled, scale_with=LearningRateScaling.NONE)
    assert planned_learning_rate(replace(UNKNOWN, learning_rate=fixed)) == 0.001
    assert scaled_learning_rate(fixed, 64) == 0.001


def test_divisions_come_from_the_cells_using_them() -> None:
    layers = TensorLayers(colwise=("a",), rowwise=("b",))
    cells = [
        settings(strategy=Strategy.MESH, tensor_degree=2, tensor_plan=layers),
        settings(strategy=Strategy.MESH, pipeline_degree=2),
        P4D,
        settings(strategy=Strategy.TENSOR),
        settings(strategy=Strategy.TENSOR, tensor_degree=4),
        settings(strategy=Strategy.TENSOR, tensor_degree=4, seed=7),
        replace(UNKNOWN, strategy=Strategy.TENSOR),
    ]
    assert tensor_divisions(cells) == (
        TensorDivision(degree=4),
        TensorDivision(degree=16),
        TensorDivision(degree=2, layers=layers),
    )


def test_stages_come_from_the_cells_cutting_the_model() -> None:
    interleaved = {"pipeline_degree": 4, "pipeline_schedule": PipelineSchedule.INTERLEAVED}
    cells = [
        settings(strategy=Strategy.MESH, tensor_degree=2),
        settings(strategy=Strategy.MESH, **interleaved),
        settings(strategy=Strategy.PIPELINE, pipeline_degree=2),
        settings(strategy=Strategy.MESH, pipeline_degree=2, seed=7),
        settings(strategy=Strategy.DDP, pipeline_schedule=PipelineSchedule.INTERLEAVED),
        replace(UNKNOWN, strategy=Strategy.PIPELINE),
    ]
    assert stage_counts(cells) == (2, 8)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, Degrees(replicate=16)),
        ({"strategy": Strategy.FSDP}, Degrees(shard=16)),
        (
            {"strategy": Strategy.FSDP, "shard_scope": ShardScope.HYBRID},
            Degrees(replicate=2, shard=8),
        ),
        ({"strategy": Strategy.TENSOR, "tensor_degree": 4}, Degrees(replicate=4, tensor=4)),
        ({"strategy": Strategy.PIPELINE}, Degrees(pipeline=16)),
        ({"strategy": Strategy.MESH}, Degrees(shard=16)),
        (
            {"strategy": Strategy.MESH, "tensor_degree": 2, "pipeline_degree": 2},
            Degrees(pipeline=2, shard=4, tensor=2),
        ),
        ({"strategy": Strategy.MESH, "shard_degree": 4}, Degrees(replicate=4, shard=4)),
        (
            {
                "strategy": Strategy.MESH,
                "shard_degree": 4,
                "replicate_degree": 1,
                "pipeline_degree": 2,
            },
            Degrees(pipeline=2, shard=4, tensor=2),
        ),
    ],
)
def test_the_first_left_out_degree_follows(changes: dict[str, Any], expected: Degrees) -> None:
    assert degrees_of(settings(**changes), 16) == expected
    assert expected.processes == 16


@examples(300)
@given(st.integers(1, 96), st.dictionaries(NAMES, st.sampled_from([1, 2, 3, 4, 8]), min_size=1))
def test_the_nearest_degrees_have_the_processes_as_product(
    processes: int, named: dict[str, int]
) -> None:
    asked = mesh(named)
    nearest = nearest_degrees(asked, processes)
    assert nearest
    for cell in nearest:
        assert degrees_of(mesh(cell), processes).processes == processes
    is_possible = degrees_of(asked, processes).processes == processes
    assert (nearest[0] == given_degrees(asked)) == is_possible


def mesh(degrees: dict[str, int]) -> Settings:
    return settings(
        strategy=Strategy.MESH, **{f"{name}_degree": degree for name, degree in degrees.items()}
    )


def test_stages_are_far_apart_on_a_mesh_and_neighbours_without_other_groups() -> None:
    assert [*stage_ranks(mesh({"pipeline": 2, "tensor": 2}), 16)] == [0, 8]
    assert [*stage_ranks(settings(strategy=Strategy.PIPELINE, pipeline_degree=4), 16)] == [
        0,
        1,
        2,
        3,
    ]
    assert [*stage_ranks(P4D, 16)] == [0]
