"""Pipeline parallelism: each rank holds some of the blocks, and a batch passes through the ranks in micro-batches."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import distributed, nn
from torch.optim import Optimizer

from training.data.batch import Batch
from training.models.blocks import saved_activations
from training.models.blueprint import Blueprint
from training.models.gradients import local_gradients, scale_to_norm, sum_of_squares
from training.models.objective import counted_labels, task_score
from training.strategies import OptimizerBuilder, Setup, TrainingStrategy
from training.strategies.pipeline_schedules import Schedules
from training.strategies.pipeline_stages import STAGES_PER_RANK, cut
from training.strategies.pipeline_weights import PipelineWeights
from training.strategies.replicas import Replicas


class PipelineParallel:
    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._device = setup.accelerator.device
        self._replicas = Replicas(setup, "pipeline")
        self.data_rank = self._replicas.data_rank
        self.data_world_size = self._replicas.data_world_size
        self._stages: dict[int, nn.Module]
        self._weights: PipelineWeights
        self._schedules: Schedules

    def place(self, blueprint: Blueprint) -> None:
        model, setup, replicas = blueprint.model, self._setup, self._replicas
        stages = cut(
            model,
            replicas.degree * STAGES_PER_RANK[setup.settings.pipeline_schedule],
            setup.task,
            setup.number_format.autocast(),
        )
        parts = [range(rank, len(stages), replicas.degree) for rank in range(replicas.degree)]
        self._weights = PipelineWeights(model, [[stages[n] for n in part] for part in parts], replicas.inner_rank)
        self._weights.make_groups(replicas.ranks)
        kept = {id(tensor) for tensor in self._weights.held().values()}
        blueprint.materialise(self._device, is_kept=lambda parameter: id(parameter) in kept)
        self._stages = {n: stages[n] for n in parts[replicas.inner_rank]}
        compiled = {n: setup.compiler.compile(stage) for n, stage in self._stages.items()}
        self._schedules = Schedules(compiled, len(stages), setup, replicas.inner_group)

    def build_optimizer(self, build: OptimizerBuilder) -> Optimizer:
        return build(self._weights.parameters())

    def forward_backward(self, batches: Sequence[Batch]) -> torch.Tensor | None:
        scale = self._setup.number_format.scale(torch.ones((), device=self._device))
        losses = [self._forward_backward_one(batch, scale / len(batches)) for batch in batches]
        self._weights.sum_shared_gradients()
        self._replicas.average_gradients(self._weights.parameters())
        return torch.stack(losses).sum() / scale if self._schedules.has_last_stage else None

    def _forward_backward_one(self, batch: Batch, factor: torch.Tensor) -> torch.Tensor:
        """Returns [], the batch's loss times ``factor`` [] where the last stage is, else zero."""
        factor = factor * batch.get("weight", 1.0) / counted_labels(self._setup.task, batch["labels"])
        with saved_activations(self._setup.settings):
            return self._schedules.train(batch, factor)

    def without_exchange(self) -> None:
        """A stage needs what the others send."""

    def clip_gradients(self, max_norm: float) -> None:
        squares = sum_of_squares(local_gradients(self._weights.first_held()), self._device)
        distributed.all_reduce(squares, group=self._replicas.inner_group)
        scale_to_norm(local_gradients(self._weights.parameters()), squares.sqrt(), max_norm)

    def agree_on_overflow(self, overflow: torch.Tensor) -> None:
        self._replicas.agree_on_overflow(overflow)

    def share(self, count: int) -> int:
        return self._replicas.share(count)

    def score(self, batch: Batch) -> torch.Tensor | None:
        logits = self._schedules.evaluate(batch)
        return None if logits is None else task_score(self._setup.task, logits, batch["labels"])

    def set_training(self, is_training: bool) -> None:
        for stage in self._stages.values():
            stage.train(is_training)

    @property
    def layout(self) -> Mapping[str, Any]:
        return {}

    def named_tensors(self) -> dict[str, torch.Tensor]:
        return self._weights.held()

    def updates(self, parameter: nn.Parameter) -> bool:
        return True

    def gather_state_dict(self) -> dict[str, torch.Tensor]:
        return dict(self.stream_state_dict())

    def stream_state_dict(self) -> Iterator[tuple[str, torch.Tensor]]:
        if self.data_rank == 0:
            yield from self._weights.stream(self._replicas.ranks[0], lambda _, tensor: tensor.detach().cpu())


def build(setup: Setup) -> TrainingStrategy:
    return PipelineParallel(setup)
