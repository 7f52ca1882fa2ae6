"""The id of a cell never changes: histories, results and claims are found by it."""

from dataclasses import dataclass

import pytest

from traindyno.core.suite.cells import identify
from traindyno.core.suite.choices import Compiler, LearningRateScaling, Precision, ShardScope, Strategy
from traindyno.core.suite.settings import LearningRate, Settings, setting

P4D = "ml.p4d.24xlarge"
SCALED = LearningRate(base=1e-4, reference_batch_size=32, scale_with=LearningRateScaling.GLOBAL_BATCH)
FROZEN = {
    "plain": (Settings(instance="local.cpu"), {}),
    "another type": (Settings(instance=P4D), {}),
    "two instances": (Settings(instance=P4D, instance_count=2), {}),
    "hybrid shards": (Settings(instance=P4D, strategy=Strategy.FSDP, shard_scope=ShardScope.HYBRID), {}),
    "compiled": (Settings(instance=P4D, compiler=Compiler.INDUCTOR), {}),
    "bf16": (Settings(instance=P4D, precision=Precision.BF16, batch_size_per_device=16), {}),
    "a scaled rate": (Settings(instance=P4D, learning_rate=SCALED, gradient_clip_norm=1.0), {}),
    "a loader": (Settings(instance=P4D, loader_workers=8, pin_memory=True), {}),
    "tensor": (Settings(instance=P4D, strategy=Strategy.TENSOR, tensor_degree=4), {}),
    "a pipeline": (Settings(instance=P4D, strategy=Strategy.PIPELINE, pipeline_degree=2, micro_batches=4), {}),
    "unpacked": (Settings(instance=P4D, packing=False, dropout=0.1, seed=7), {}),
    "a script": (Settings(instance="local.cpu", strategy=Strategy.SINGLE), {"lr": 0.1, "name": "a"}),
}
IDS = {
    "plain": "e1feecf0",
    "another type": "b9e679fb",
    "two instances": "0593ad3f",
    "hybrid shards": "2a6bfdf8",
    "compiled": "69a940ea",
    "bf16": "7190cc41",
    "a scaled rate": "5e6ad542",
    "a loader": "7fd576de",
    "tensor": "720b3ee5",
    "a pipeline": "61acea7c",
    "unpacked": "e4bfcd2d",
    "a script": "a7be85d1",
}


@pytest.mark.parametrize("name", FROZEN)
def test_the_ids_of_these_settings_are_frozen(name: str) -> None:
    assert identify(*FROZEN[name]) == IDS[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Later(Settings):
    fused: bool = setting(False, "a setting that was added later")


@pytest.mark.parametrize("name", ["plain", "a scaled rate"])
def test_a_later_setting_changes_an_id_only_where_it_differs_from_its_default(name: str) -> None:
    settings, hyperparameters = FROZEN[name]
    first = {each: getattr(settings, each) for each in Settings.__dataclass_fields__}
    assert identify(Later(**first), hyperparameters) == IDS[name]
    assert identify(Later(**first, fused=True), hyperparameters) != IDS[name]
