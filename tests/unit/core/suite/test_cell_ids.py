"""The id of a cell never changes: histories, results and claims are found by it."""

from dataclasses import dataclass

import pytest

from traindyno.core.run.settings import LearningRate, Settings, setting
from traindyno.core.suite.cells import identify
from traindyno.core.suite.choices import (
    Compiler,
    LearningRateScaling,
    Precision,
    ShardScope,
    Strategy,
)

P4D = "ml.p4d.24xlarge"
SCALED = LearningRate(
    base=1e-4, reference_batch_size=32, scale_with=LearningRateScaling.GLOBAL_BATCH
)
FROZEN = {
    "e1feecf0": (Settings(instance="local.cpu"), {}),
    "b9e679fb": (Settings(instance=P4D), {}),
    "0593ad3f": (Settings(instance=P4D, instance_count=2), {}),
    "2a6bfdf8": (Settings(instance=P4D, strategy=Strategy.FSDP, shard_scope=ShardScope.HYBRID), {}),
    "69a940ea": (Settings(instance=P4D, compiler=Compiler.INDUCTOR), {}),
    "7190cc41": (Settings(instance=P4D, precision=Precision.BF16, batch_size_per_device=16), {}),
    "5e6ad542": (Settings(instance=P4D, learning_rate=SCALED, gradient_clip_norm=1.0), {}),
    "7fd576de": (Settings(instance=P4D, loader_workers=8, pin_memory=True), {}),
    "720b3ee5": (Settings(instance=P4D, strategy=Strategy.TENSOR, tensor_degree=4), {}),
    "61acea7c": (
        Settings(instance=P4D, strategy=Strategy.PIPELINE, pipeline_degree=2, micro_batches=4),
        {},
    ),
    "e4bfcd2d": (Settings(instance=P4D, packing=False, dropout=0.1, seed=7), {}),
    "a7be85d1": (
        Settings(instance="local.cpu", strategy=Strategy.SINGLE),
        {"lr": 0.1, "name": "a"},
    ),
}


@pytest.mark.parametrize("cell_id", FROZEN)
def test_the_ids_of_these_settings_are_frozen(cell_id: str) -> None:
    assert identify(*FROZEN[cell_id]) == cell_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Later(Settings):
    fused: bool = setting(False, "a setting that was added later")


@pytest.mark.parametrize("cell_id", ["e1feecf0", "5e6ad542"])
def test_a_later_setting_changes_an_id_only_by_another_value_than_its_default(cell_id: str) -> None:
    settings, hyperparameters = FROZEN[cell_id]
    first = {name: getattr(settings, name) for name in Settings.__dataclass_fields__}
    assert identify(Later(**first), hyperparameters) == cell_id
    assert identify(Later(**first, fused=True), hyperparameters) != cell_id
