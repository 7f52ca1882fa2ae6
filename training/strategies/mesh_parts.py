"""Divides a model over a mesh of processes.

The order matters, because each step builds on the modules of the steps before:

1. The pipeline cuts the blocks into stages; each process keeps its own. Without a pipeline, the one
   stage has the loss.
2. The tensor plan shards the matrices of a stage over ``tensor``.
3. Checkpointing recomputes block by block; it is part of the model since it was built.
4. The compiler compiles the stage.
5. ``fully_shard`` shards each block, then the rest of the stage, over ``shard``, and averages over
   ``replicate``. With one shard there is none: the strategy averages the gradients once a step.

Values are loaded afterwards. Parameters have any shape [...].
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from transformers import PreTrainedModel

from traindyno.core.run.processes import Degrees, stage_count
from training.errors import WorkloadError
from training.models.blueprint import repeated_blocks
from training.models.objective import Objective
from training.models.pipeline_stages import Stage, cut
from training.strategies import Setup
from training.strategies.pipeline_weights import PipelineWeights
from training.strategies.process_mesh import ProcessMesh
from training.strategies.tensor_layers import DividedLayers, checked_plan, is_converted


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The part of the model that this process has."""

    #: The stages of this process by number, as it runs them.
    stages: Mapping[int, nn.Module]
    stage_count: int
    weights: PipelineWeights
    #: The layers that the tensor plan divided in each stage.
    divided: list[DividedLayers]
    #: Whether any layer of the whole model is converted, so that all processes say the same.
    is_converted: bool


def divide_model(model: PreTrainedModel, mesh: ProcessMesh, setup: Setup) -> Parts:
    degrees = mesh.degrees
    plan = (
        checked_plan(model, setup.settings.tensor_plan, degrees.tensor)
        if degrees.tensor > 1
        else None
    )
    converts = plan is not None and is_converted(model.base_model, plan)
    stages = _stages(model, degrees, setup)
    parts = [range(rank, len(stages), degrees.pipeline) for rank in range(degrees.pipeline)]
    blocks = repeated_blocks(model)
    for part in parts if plan is not None or degrees.shard > 1 else ():
        # A block is divided once, so only one of a process's stages can have it; ALBERT's is in all
        # of them.
        held = Counter(module for number in part for module in stages[number].modules())
        if any(held[block] > 1 for block in blocks):
            raise WorkloadError(
                "two stages of one process share a block, which can't be sharded or divided; "
                "expected shard_degree 1 and tensor_degree 1, or another pipeline_schedule than "
                "interleaved"
            )
    weights = PipelineWeights(
        model, [[stages[number] for number in part] for part in parts], mesh.rank("pipeline")
    )
    weights.make_groups(mesh.pipelines)
    stages_here = {number: stages[number] for number in parts[mesh.rank("pipeline")]}
    divided: list[DividedLayers] = []
    run: dict[int, nn.Module] = {}
    for number, stage in stages_here.items():
        if plan is not None:
            divided.append(DividedLayers(stage.model, mesh.mesh["tensor"], plan))
        run[number] = setup.compiler.compile(stage)
        if degrees.shard > 1:
            shard_stage(run[number], blocks, mesh, setup)
    weights.tie_again()
    return Parts(
        stages=run, stage_count=len(stages), weights=weights, divided=divided, is_converted=converts
    )


def _stages(model: PreTrainedModel, degrees: Degrees, setup: Setup) -> Sequence[Stage | Objective]:
    autocast = setup.number_format.autocast()
    if degrees.pipeline == 1:
        return [Objective(model, setup.task, autocast, setup.settings.loss_chunks)]
    return cut(model, stage_count(setup.settings, degrees), setup.task, autocast)


def shard_stage(
    stage: nn.Module, blocks: Iterable[nn.Module], mesh: ProcessMesh, setup: Setup
) -> None:
    """Parameters are communicated in the lower format; autocast decides where activations are
    computed in it, as with DDP. They stay gathered between the micro-batches of a pipeline.
    """
    policy = MixedPrecisionPolicy(
        param_dtype=setup.number_format.lower_type,
        reduce_dtype=torch.float32,
        cast_forward_inputs=False,
    )
    reshards = None if mesh.degrees.pipeline == 1 else False
    modules = set(stage.modules())
    for block in (module for module in blocks if module in modules):
        fully_shard(block, mesh=mesh.data_mesh, mp_policy=policy, reshard_after_forward=reshards)
    fully_shard(stage, mesh=mesh.data_mesh, mp_policy=policy, reshard_after_forward=reshards)
