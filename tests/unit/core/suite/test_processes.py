"""Processes, replicas and batches, by hand."""

from dataclasses import replace
from typing import Any

import pytest

from traindyno.core.suite.choices import LearningRateScaling, Strategy
from traindyno.core.suite.processes import (
    global_batch_size,
    planned_batch_size,
    planned_learning_rate,
    processes_per_replica,
    replica_count,
    scaled_learning_rate,
    tensor_degrees,
    world_size,
)
from traindyno.core.suite.settings import LearningRate, Settings

P4D = Settings(instance="ml.p4d.24xlarge", instance_count=2, strategy=Strategy.DDP, batch_size_per_device=4)
UNKNOWN = replace(P4D, instance="ml.unheard.of")


def settings(**changes: Any) -> Settings:
    return replace(P4D, **changes)


def test_a_job_has_a_process_for_each_device() -> None:
    assert world_size(P4D) == 16
    assert world_size(UNKNOWN) is None
    alone = settings(strategy=Strategy.SINGLE, instance_count=1)
    assert (world_size(alone), planned_batch_size(alone)) == (1, 4)


def test_a_replica_takes_the_processes_of_its_degree_or_all() -> None:
    assert processes_per_replica(P4D, 16) == 1
    assert processes_per_replica(settings(strategy=Strategy.TENSOR, tensor_degree=4), 16) == 4
    assert processes_per_replica(settings(strategy=Strategy.TENSOR), 16) == 16
    assert replica_count(settings(strategy=Strategy.TENSOR, tensor_degree=4), 16) == 4
    assert replica_count(settings(strategy=Strategy.TENSOR, tensor_degree=32), 16) == 0


def test_the_global_batch_counts_devices_and_accumulated_steps() -> None:
    # 4 samples x 3 steps x 16 replicas
    assert global_batch_size(settings(gradient_accumulation_steps=3), 16) == 192
    assert planned_batch_size(P4D) == 64
    assert planned_batch_size(UNKNOWN) is None


def test_the_learning_rate_scales_with_the_global_batch() -> None:
    scaled = LearningRate(base=0.001, reference_batch_size=32, scale_with=LearningRateScaling.GLOBAL_BATCH)
    assert scaled_learning_rate(scaled, 64) == pytest.approx(0.002)
    assert planned_learning_rate(settings(learning_rate=scaled)) == pytest.approx(0.002)
    assert planned_learning_rate(replace(UNKNOWN, learning_rate=scaled)) is None
    fixed = replace(scaled, scale_with=LearningRateScaling.NONE)
    assert planned_learning_rate(replace(UNKNOWN, learning_rate=fixed)) == 0.001
    assert scaled_learning_rate(fixed, 64) == 0.001


def test_tensor_degrees_are_those_of_the_cells_that_use_them() -> None:
    cells = [
        P4D,
        settings(strategy=Strategy.TENSOR),
        settings(strategy=Strategy.TENSOR, tensor_degree=4),
        settings(strategy=Strategy.TENSOR, tensor_degree=4, seed=7),
        replace(UNKNOWN, strategy=Strategy.TENSOR),
    ]
    assert tensor_degrees(cells) == (4, 16)
