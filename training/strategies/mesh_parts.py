"""Divides a model over a mesh of processes, in the order that works: each step builds on the modules of those before.

1. The pipeline cuts the blocks into stages; each process keeps its own.
2. The tensor plan shards the matrices of a stage over ``tensor``.
3. Checkpointing recomputes block by block; it is part of the model since it was built.
4. The compiler compiles the stage.
5. ``fully_shard`` shards each block, then the rest of the stage, over ``shard``, and averages over ``replicate``.

Values are loaded afterwards. Parameters have any shape [...].
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import nn
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from transformers import PreTrainedModel

from training.errors import WorkloadError
from training.models.blocks import repeated_blocks
from training.strategies import Setup
from training.strategies.pipeline_stages import STAGES_PER_RANK, Stage, cut
from training.strategies.pipeline_weights import PipelineWeights
from training.strategies.process_mesh import ProcessMesh
from training.strategies.tensor_layers import DividedLayers, checked_plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What this process has of the model.

    ``stages``: by number, as it runs them. ``divided``: what the tensor plan did to each of them.
    """

    stages: Mapping[int, nn.Module]
    stage_count: int
    weights: PipelineWeights
    divided: list[DividedLayers]


def divide_model(model: PreTrainedModel, mesh: ProcessMesh, setup: Setup) -> Parts:
    degrees, autocast = mesh.degrees, setup.number_format.autocast()
    plan = checked_plan(model, setup.settings.tensor_plan, degrees.tensor) if degrees.tensor > 1 else None
    if degrees.pipeline > 1:
        per_rank = STAGES_PER_RANK[setup.settings.pipeline_schedule]
        stages = cut(model, degrees.pipeline * per_rank, setup.task, autocast)
    else:
        stages = [Stage(model, is_first=True, is_last=True, reads_tokens=False, autocast=autocast)]
    parts = [range(rank, len(stages), degrees.pipeline) for rank in range(degrees.pipeline)]
    weights = PipelineWeights(model, [[stages[n] for n in part] for part in parts], mesh.rank("pipeline"))
    weights.make_groups(mesh.pipelines)
    own = {n: stages[n] for n in parts[mesh.rank("pipeline")]}
    blocks = repeated_blocks(model)
    divided: list[DividedLayers] = []
    run: dict[int, nn.Module] = {}
    for number, stage in own.items():
        if plan is not None:
            divided.append(DividedLayers(stage.model, mesh.mesh["tensor"], plan))
        run[number] = setup.compiler.compile(stage)
        if degrees.replicas > 1:
            shard_stage(run[number], blocks, mesh, setup)
    weights.tie_again()
    return Parts(stages=run, stage_count=len(stages), weights=weights, divided=divided)


def shard_stage(stage: nn.Module, blocks: Iterable[nn.Module], mesh: ProcessMesh, setup: Setup) -> None:
    """Parameters are communicated in the lower format, and stay gathered between the micro-batches of a pipeline."""
    policy = MixedPrecisionPolicy(
        param_dtype=setup.number_format.lower_type, reduce_dtype=torch.float32, cast_forward_inputs=False
    )
    modules = set(stage.modules())
    for block in (each for each in blocks if each in modules):
        if isinstance(block, FSDPModule):
            raise WorkloadError(
                "two stages of one process share a block, which can't be sharded; expected shard_degree 1 and "
                "replicate_degree 1, or another pipeline_schedule than interleaved"
            )
        fully_shard(block, mesh=mesh.data_mesh, mp_policy=policy, reshard_after_forward=mesh.degrees.pipeline == 1)
    fully_shard(stage, mesh=mesh.data_mesh, mp_policy=policy, reshard_after_forward=mesh.degrees.pipeline == 1)
