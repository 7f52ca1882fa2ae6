"""Pipeline, replicate, shard and tensor parallelism on one mesh of processes.

Any degree may be 1. The strategies fsdp, tensor and pipeline are names for one or two degrees.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import distributed, nn
from torch.distributed import ProcessGroup
from torch.distributed.fsdp import FSDPModule
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
)
from torch.optim import Optimizer

from traindyno.core.suite.choices import PipelineSchedule
from training.data.batch import Batch
from training.errors import WorkloadError
from training.models.blueprint import Blueprint, Readable, saved_activations
from training.models.gradients import local_gradients, scale_to_norm, sum_gradients, sum_of_squares
from training.models.objective import counted_labels, summed_task_loss, task_score
from training.strategies import OptimizerBuilder, Setup, TrainingStrategy
from training.strategies.mesh_parts import Parts, divide_model
from training.strategies.process_mesh import ProcessMesh
from training.strategies.tensor_layers import OTHER_PLAN, check_replicated_gradients
from training.strategies.whole_model import train_batches

Shape = tuple[int, ...]
# In PyTorch's errors where a layer or a view gets features of another number than its own
WRONG_SHAPES = (
    "shape",
    "size of tensor",
    "split_sizes",
    "izes of tensors",
    "same reduction dim",
    "Sharding propagation",
    "mixed torch.Tensor and DTensor",
)


class StagedPasses:
    """The passes of a pipeline, of which this process has some stages by their numbers.

    There is a schedule for each shape of batch: within it, the tensors between stages have a fixed
    shape [B, L, D].
    """

    def __init__(
        self,
        stages: Mapping[int, nn.Module],
        stage_count: int,
        setup: Setup,
        inner_group: ProcessGroup,
    ) -> None:
        self._stages = stages
        self._stage_count = stage_count
        self._setup = setup
        self._group = inner_group
        self._training: dict[Shape, Any] = {}
        self._evaluation: dict[Shape, Any] = {}
        self._factor: torch.Tensor

    def train(self, batches: Sequence[Batch]) -> torch.Tensor | None:
        """Leave the gradients of the mean loss of ``batches``.

        Returns [], this mean; None on ranks that hold none.
        """
        unit_loss = torch.ones((), device=self._setup.accelerator.device)
        scale = self._setup.number_format.scale(unit_loss)
        losses = []
        for batch in batches:
            labels = counted_labels(self._setup.task, batch["labels"])
            self._factor = scale / len(batches) * batch.get("weight", 1.0) / labels
            with saved_activations(self._setup.settings):
                losses += [loss.detach() for loss in self._train(batch)]
        return torch.stack(losses).sum() / scale if losses else None

    def _train(self, batch: Batch) -> list[torch.Tensor]:
        """Returns the losses [] of micro-batches where the last stage is, nothing elsewhere."""
        shape = tuple(batch["input_ids"].shape)
        if shape in self._training:
            return self._step(self._training[shape], batch)
        count = self._setup.settings.micro_batches
        if shape[0] % count:
            raise WorkloadError(
                f"micro_batches is {count}, which does not divide a batch of {shape[0]} samples"
            )
        self._training[shape] = self._make(count, self._loss)
        with _kept_gradients(self._stages.values()):
            return self._step(self._training[shape], batch)

    def _step(self, schedule: Any, batch: Batch) -> list[torch.Tensor]:
        losses: list[torch.Tensor] = []
        schedule.step(
            *self._first_input(batch),
            target=batch["labels"],
            losses=losses,
            return_outputs=False,
            **_for_all(batch),
        )
        return losses

    def score(self, batch: Batch) -> torch.Tensor | None:
        """Returns [3] where the last stage is."""
        shape = tuple(batch["input_ids"].shape)
        if shape not in self._evaluation:
            self._evaluation[shape] = self._make(1, None)
        with self._setup.compiler.eagerly():
            logits: torch.Tensor | None = self._evaluation[shape].step(
                *self._first_input(batch), **_for_all(batch)
            )
        return None if logits is None else task_score(self._setup.task, logits, batch["labels"])

    def _loss(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Takes ``logits`` [B, L, V] or [B, C], ``labels`` [B, L] or [B] of a micro-batch and
        returns [].
        """
        return summed_task_loss(self._setup.task, logits, labels) * self._factor

    def _make(self, micro_batches: int, loss: Any) -> Any:
        device = self._setup.accelerator.device
        stages: list[Any] = [
            PipelineStage(stage, number, self._stage_count, device, group=self._group)
            for number, stage in self._stages.items()
        ]
        options = {"n_microbatches": micro_batches, "loss_fn": loss, "scale_grads": False}
        match self._setup.settings.pipeline_schedule:
            case PipelineSchedule.INTERLEAVED:
                return ScheduleInterleaved1F1B(stages, **options)
            case PipelineSchedule.ONE_F_ONE_B if loss is not None:
                return Schedule1F1B(stages[0], **options)
            case _:
                return ScheduleGPipe(stages[0], **options)

    def _first_input(self, batch: Batch) -> tuple[torch.Tensor, ...]:
        """The tokens [B, L] on the first stage."""
        return (batch["input_ids"],) if 0 in self._stages else ()


@contextmanager
def _kept_gradients(stages: Iterable[nn.Module]) -> Iterator[None]:
    """Keeps the gradients of earlier batches over the first step of a schedule.

    This step tries the stages for the shapes between them, and then drops the gradients of sharded
    parameters.
    """
    kept = [
        (parameter, parameter.grad)
        for stage in stages
        for parameter in stage.parameters()
        if parameter.grad is not None
    ]
    for parameter, _ in kept:
        parameter.grad = None
    yield
    for parameter, gradient in kept:
        parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient


def _for_all(batch: Batch) -> dict[str, torch.Tensor]:
    """What every stage gets of the batch, each [B, L]."""
    schedule_batch: Batch = {
        name: batch[name] for name in ("attention_mask", "position_ids") if name in batch
    }
    return {"tokens": batch["input_ids"], **schedule_batch}


class WholePasses:
    """The passes of a model without a pipeline.

    The objective gives the loss. If it is sharded, gradients are reduced with a step's last batch.
    """

    def __init__(self, objective: nn.Module, setup: Setup) -> None:
        self._objective = objective
        self._setup = setup

    def train(self, batches: Sequence[Batch]) -> torch.Tensor:
        """Leave the gradients of the mean loss of ``batches``. Returns [], this mean, unscaled."""
        return train_batches(self._objective, batches, self._setup, self._unreduced)

    @contextmanager
    def _unreduced(self) -> Iterator[None]:
        sharded = self._objective if isinstance(self._objective, FSDPModule) else None
        if sharded:
            sharded.set_requires_gradient_sync(False)
        try:
            yield
        finally:
            if sharded:
                sharded.set_requires_gradient_sync(True)

    def score(self, batch: Batch) -> torch.Tensor:
        with self._setup.compiler.eagerly():
            score: torch.Tensor = self._objective(**batch)
        return score


class MeshParallel(TrainingStrategy):
    """There are no steps without exchange: FSDP, stages and tensor groups exchange more than
    gradients.
    """

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._device = setup.accelerator.device
        self._mesh = ProcessMesh(setup)
        self.data_rank = self._mesh.data_rank
        self.data_world_size = self._mesh.degrees.replicas
        self._are_gradients_checked = False
        self._parts: Parts
        self._passes: WholePasses | StagedPasses
        self._parameters: list[nn.Parameter]
        self._counted: dict[int, list[nn.Parameter]]

    def place(self, blueprint: Blueprint) -> None:
        self._parts = parts = divide_model(blueprint.model, self._mesh, self._setup)
        kept = {id(tensor) for tensor in parts.weights.held().values()}
        blueprint.materialise(
            self._device, is_kept=lambda weight: id(weight) in kept, as_held=self._as_held
        )
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
        return (
            {"converted for tensor_degree": self._mesh.degrees.tensor}
            if self._parts.is_converted
            else {}
        )

    def _as_held(self, name: str, whole: Readable) -> Readable:
        for layers in self._parts.divided:
            whole = layers.converted.convert(name, whole)
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

    def _complete_gradients(self) -> None:
        """Does once a step what neither the backward pass nor ``fully_shard`` did."""
        degrees = self._mesh.degrees
        group = self._mesh.mesh.get_group("tensor")
        sum_gradients(
            [gradient for layers in self._parts.divided for gradient in layers.partial_gradients()],
            group,
        )
        if self._parts.divided and not self._are_gradients_checked:
            held = self._parts.weights.held().items()
            self._are_gradients_checked = check_replicated_gradients(held, group)
        self._parts.weights.sum_shared_gradients()
        if degrees.shard == 1 and degrees.replicate > 1:
            sum_gradients(
                self._parameters, self._mesh.mesh.get_group("replicate"), divisor=degrees.replicate
            )

    def clip_gradients(self, max_norm: float) -> None:
        """Clips the gradients by the norm of all of them.

        Where several processes hold the same gradients, each adds an equal part of their squares.
        """
        parts = [
            sum_of_squares(local_gradients(parameters), self._device) / holders
            for holders, parameters in self._counted.items()
        ]
        squares = torch.stack([torch.zeros((), device=self._device), *parts]).sum()
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

    def stream_state_dict(self) -> Iterator[tuple[str, torch.Tensor]]:
        yield from self._parts.weights.stream(self._mesh.pipelines[0], self._restored)

    def _restored(self, name: str, whole: torch.Tensor) -> torch.Tensor:
        """Returns the tensor [...] of this name as transformers keeps it."""
        for layers in self._parts.divided:
            whole = layers.converted.restore(name, whole)
        return whole
