"""Pipeline, replicate, shard and tensor parallelism on one mesh of processes; strategies fsdp, tensor, pipeline, mesh.

Any degree may be 1. A short name gives one or two of them.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import distributed, nn
from torch.optim import Optimizer

from training.data.batch import Batch
from training.errors import WorkloadError
from training.models.blueprint import Blueprint, Readable
from training.models.gradients import local_gradients, scale_to_norm, sum_gradients, sum_of_squares
from training.strategies import OptimizerBuilder, Setup, TrainingStrategy
from training.strategies.mesh_parts import Parts, ProcessMesh, divide_model
from training.strategies.passes import Passes, StagedPasses, WholePasses
from training.strategies.tensor_layers import OTHER_PLAN, check_replicated_gradients

# In PyTorch's errors where a layer or a view gets features of another number than its own
WRONG_SHAPES = (
    *("shape", "size of tensor", "split_sizes", "izes of tensors", "same reduction dim"),
    *("Sharding propagation", "mixed torch.Tensor and DTensor"),
)


class MeshParallel:
    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._device = setup.accelerator.device
        self._mesh = ProcessMesh(setup)
        self.data_rank = self._mesh.data_rank
        self.data_world_size = self._mesh.degrees.replicas
        self._are_gradients_checked = False
        self._parts: Parts
        self._passes: Passes
        self._parameters: list[nn.Parameter]
        self._counted: dict[int, list[nn.Parameter]]

    def place(self, blueprint: Blueprint) -> None:
        self._parts = parts = divide_model(blueprint.model, self._mesh, self._setup)
        kept = {id(tensor) for tensor in parts.weights.held().values()}
        blueprint.materialise(self._device, is_kept=lambda each: id(each) in kept, as_held=self._as_held)
        if parts.stage_count > 1:
            group = self._mesh.mesh.get_group("pipeline")
            self._passes = StagedPasses(parts.stages, parts.stage_count, self._setup, group)
        else:
            self._passes = WholePasses(parts.stages[0], self._setup)
        # Kept, because finding them in every step would iterate over all modules.
        self._parameters = parts.weights.parameters()
        self._counted = {}
        for parameter in parts.weights.first_held():
            self._counted.setdefault(self._mesh.holders(parameter), []).append(parameter)

    @property
    def layout(self) -> dict[str, Any]:
        return {"converted for tensor_degree": self._mesh.degrees.tensor} if self._parts.is_converted else {}

    def _as_held(self, name: str, whole: Readable) -> Readable:
        for each in self._parts.divided:
            whole = each.converted.convert(name, whole, each.prefix)
        return whole

    def build_optimizer(self, build: OptimizerBuilder) -> Optimizer:
        return build(self._parameters)

    def forward_backward(self, batches: Sequence[Batch]) -> torch.Tensor | None:
        is_first = self._parts.divided and not self._are_gradients_checked
        try:
            loss = self._passes.train(batches)
        except RuntimeError as error:
            if is_first and any(sign in str(error) for sign in WRONG_SHAPES):
                raise WorkloadError(
                    f"under this tensor plan, the model's layers don't fit: {error}; {OTHER_PLAN}"
                ) from error
            raise
        self._complete_gradients()
        return loss

    def without_exchange(self) -> None:
        """FSDP, stages and tensor groups exchange more than gradients."""

    def _complete_gradients(self) -> None:
        """Does once a step what neither the backward pass nor ``fully_shard`` did."""
        degrees, group = self._mesh.degrees, self._mesh.mesh.get_group("tensor")
        sum_gradients([each for layers in self._parts.divided for each in layers.partial_gradients()], group)
        if self._parts.divided and not self._are_gradients_checked:
            held = self._parts.weights.held().items()
            self._are_gradients_checked = check_replicated_gradients(held, group)
        self._parts.weights.sum_shared_gradients()
        if degrees.shard == 1 and degrees.replicate > 1:
            sum_gradients(self._parameters, self._mesh.mesh.get_group("replicate"), divisor=degrees.replicate)

    def clip_gradients(self, max_norm: float) -> None:
        """Each process adds the part of its squares that is its own among those that hold the same gradients."""
        own = [
            sum_of_squares(local_gradients(parameters), self._device) / holders
            for holders, parameters in self._counted.items()
        ]
        squares = torch.stack([torch.zeros((), device=self._device), *own]).sum()
        distributed.all_reduce(squares)
        scale_to_norm(local_gradients(self._parameters), squares.sqrt(), max_norm)

    def agree_on_overflow(self, overflow: torch.Tensor) -> None:
        distributed.all_reduce(overflow, op=distributed.ReduceOp.MAX)

    def share(self, count: int) -> int:
        return self._mesh.share(count)

    def score(self, batch: Batch) -> torch.Tensor | None:
        score = self._passes.score(batch)
        return score if self._mesh.rank("tensor") == 0 else None

    def set_training(self, is_training: bool) -> None:
        for stage in self._parts.stages.values():
            stage.train(is_training)

    def named_tensors(self) -> dict[str, torch.Tensor]:
        return self._parts.weights.held()

    def updates(self, parameter: nn.Parameter) -> bool:
        return True

    def gather_state_dict(self) -> dict[str, torch.Tensor]:
        return dict(self.stream_state_dict())

    def stream_state_dict(self) -> Iterator[tuple[str, torch.Tensor]]:
        yield from self._parts.weights.stream(self._mesh.pipelines[0], self._restored)

    def _restored(self, name: str, whole: torch.Tensor) -> torch.Tensor:
        """Returns the tensor [...] of this name as transformers keeps it."""
        for each in self._parts.divided:
            whole = each.converted.restore(name, whole, each.prefix)
        return whole


def build(setup: Setup) -> TrainingStrategy:
    return MeshParallel(setup)
