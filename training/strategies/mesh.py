"""Pipeline, replicate, shard and tensor parallelism together, on one mesh of processes. Any degree may be 1."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import distributed, nn
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer

from training.data.batch import Batch
from training.models.blocks import saved_activations
from training.models.blueprint import Blueprint, Readable
from training.models.gradients import local_gradients, scale_to_norm, sum_gradients, sum_of_squares
from training.models.objective import counted_labels, task_score
from training.strategies import OptimizerBuilder, Setup, TrainingStrategy
from training.strategies.mesh_parts import Parts, divide_model
from training.strategies.pipeline_schedules import Schedules
from training.strategies.process_mesh import ProcessMesh
from training.strategies.tensor_layers import check_replicated_gradients


class MeshParallel:
    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._device = setup.accelerator.device
        self._mesh = ProcessMesh(setup)
        self.data_rank = self._mesh.data_rank
        self.data_world_size = self._mesh.degrees.replicas
        self._are_gradients_checked = False
        self._parts: Parts
        self._schedules: Schedules

    def place(self, blueprint: Blueprint) -> None:
        self._parts = parts = divide_model(blueprint.model, self._mesh, self._setup)
        kept = {id(tensor) for tensor in parts.weights.held().values()}
        blueprint.materialise(self._device, is_kept=lambda each: id(each) in kept, as_held=self._as_held)
        group = self._mesh.mesh.get_group("pipeline")
        self._schedules = Schedules(parts.stages, parts.stage_count, self._setup, group)

    @property
    def layout(self) -> dict[str, Any]:
        is_converted = any(each.converted.is_used for each in self._parts.divided)
        return {"converted for tensor_degree": self._mesh.degrees.tensor} if is_converted else {}

    def _as_held(self, name: str, whole: Readable) -> Readable:
        for each in self._parts.divided:
            whole = each.converted.convert(name, whole, each.prefix)
        return whole

    def build_optimizer(self, build: OptimizerBuilder) -> Optimizer:
        return build(self._parts.weights.parameters())

    def forward_backward(self, batches: Sequence[Batch]) -> torch.Tensor | None:
        scale = self._setup.number_format.scale(torch.ones((), device=self._device))
        losses = [self._forward_backward_one(batch, scale / len(batches)) for batch in batches]
        self._complete_gradients()
        self._parts.weights.sum_shared_gradients()
        return torch.stack(losses).sum() / scale if self._schedules.has_last_stage else None

    def without_exchange(self) -> None:
        """FSDP, stages and tensor groups exchange more than gradients."""

    def _complete_gradients(self) -> None:
        group = self._mesh.mesh.get_group("tensor")
        sum_gradients([each for layers in self._parts.divided for each in layers.partial_gradients()], group)
        if self._parts.divided and not self._are_gradients_checked:
            check_replicated_gradients(self._parts.weights.held().items(), group)
            self._are_gradients_checked = True

    def _forward_backward_one(self, batch: Batch, factor: torch.Tensor) -> torch.Tensor:
        """Returns [], the batch's loss times ``factor`` [] where the last stage is, else zero."""
        factor = factor * batch.get("weight", 1.0) / counted_labels(self._setup.task, batch["labels"])
        with saved_activations(self._setup.settings):
            return self._schedules.train(batch, factor)

    def clip_gradients(self, max_norm: float) -> None:
        """Each process adds the part of its squares that is its own among those that hold the same gradients."""
        own = [
            sum_of_squares(local_gradients([parameter]), self._device) / self._mesh.holders(parameter)
            for parameter in self._parts.weights.first_held()
        ]
        squares = torch.stack([torch.zeros((), device=self._device), *own]).sum()
        distributed.all_reduce(squares)
        scale_to_norm(local_gradients(self._parts.weights.parameters()), squares.sqrt(), max_norm)

    def agree_on_overflow(self, overflow: torch.Tensor) -> None:
        distributed.all_reduce(overflow, op=distributed.ReduceOp.MAX)

    def share(self, count: int) -> int:
        return self._mesh.share(count)

    def score(self, batch: Batch) -> torch.Tensor | None:
        logits = self._schedules.evaluate(batch)
        if logits is None or self._mesh.rank("tensor") > 0:
            return None
        return task_score(self._setup.task, logits, batch["labels"])

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
        pipeline = self._mesh.pipelines[0] if self._mesh.is_in_first_pipeline else None
        yield from self._parts.weights.stream(pipeline, self._whole)

    def _whole(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        """Returns the tensor [...] of this name as transformers keeps it, of all processes of its stage."""
        whole = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
        whole = whole.detach().cpu()
        for each in self._parts.divided:
            whole = each.converted.restore(name, whole, each.prefix)
        return whole


def build(setup: Setup) -> TrainingStrategy:
    return MeshParallel(setup)
