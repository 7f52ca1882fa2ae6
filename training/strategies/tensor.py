"""Tensor parallelism: each block's matrices are sharded over ranks that work on the same samples, with DTensor."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

import torch
from torch import distributed, nn
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, ParallelStyle, RowwiseParallel, parallelize_module

from training.blueprint import Readable
from training.data.batch import Batch
from training.gradients import local_gradients, scale_to_norm, sum_gradients, sum_of_squares
from training.objective import Objective
from training.strategies import Setup, TrainingStrategy
from training.strategies.conv1d import ConvertedLayers
from training.strategies.replicas import Replicas
from training.strategies.tensor_plans import (
    COLUMNS,
    COLUMNS_GATHERED,
    PARTIAL_GRADIENT,
    ROWS,
    ROWS_SPLIT,
    TensorPlan,
    check_divisible,
    matching,
    plan_for,
)
from training.strategies.whole_model import WholeModelStrategy


class TensorParallel(WholeModelStrategy):
    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._replicas = Replicas(setup, "tensor")
        self.data_rank = self._replicas.data_rank
        self.data_world_size = self._replicas.data_world_size
        self._converted: ConvertedLayers
        self._partial: list[nn.Parameter]

    def _cut(self, objective: Objective) -> None:
        model = objective.model
        plan = plan_for(model)
        check_divisible(model, plan, self._replicas.degree)
        base = model.base_model
        self._converted = ConvertedLayers(base, plan, self._replicas.degree)
        parallelize_module(base, self._replicas.inner_mesh, _styles(plan))
        _divide_head_counts(base, plan, self._replicas.degree)

    def _as_held(self, name: str, whole: Readable) -> Readable:
        return self._converted.convert(name, whole, f"{self._objective.model.base_model_prefix}.")

    def _wrap(self, objective: Objective) -> nn.Module:
        self._partial = _parameters_with_partial_gradients(objective.model.base_model, plan_for(objective.model))
        return objective

    def _after_backward(self) -> None:
        sum_gradients(self._partial, self._replicas.inner_group)
        self._replicas.average_gradients(self.parameters())

    def clip_gradients(self, max_norm: float) -> None:
        cut, whole = _sharded_and_replicated(self.parameters())
        device = self._setup.accelerator.device
        squares = sum_of_squares(cut, device)
        distributed.all_reduce(squares, group=self._replicas.inner_group)
        norm = (squares + sum_of_squares(whole, device)).sqrt()
        scale_to_norm(cut, norm, max_norm)
        scale_to_norm(whole, norm, max_norm)

    def agree_on_overflow(self, overflow: torch.Tensor) -> None:
        self._replicas.agree_on_overflow(overflow)

    def share(self, count: int) -> int:
        return self._replicas.share(count)

    def score(self, batch: Batch) -> torch.Tensor | None:
        score = super().score(batch)
        return score if self._replicas.inner_rank == 0 else None

    def stream_state_dict(self) -> Iterator[tuple[str, torch.Tensor]]:
        if self.data_rank != 0:
            return
        model = self._objective.model
        for name, tensor in model.state_dict().items():
            if self._setup.topology.is_first:
                yield name, self._converted.restore(name, _whole(tensor), f"{model.base_model_prefix}.")
            else:
                _whole(tensor)  # the first rank needs this one's part


def _styles(plan: TensorPlan) -> dict[str, ParallelStyle]:
    makers: Mapping[str, Callable[[], ParallelStyle]] = {
        COLUMNS: ColwiseParallel,
        ROWS: RowwiseParallel,
        COLUMNS_GATHERED: partial(ColwiseParallel, output_layouts=Replicate()),
        ROWS_SPLIT: partial(RowwiseParallel, input_layouts=Replicate()),
    }
    return {path: makers[style]() for path, style in plan.styles.items() if style in makers}


def _divide_head_counts(base: nn.Module, plan: TensorPlan, degree: int) -> None:
    for pattern in plan.per_rank:
        path, _, attribute = pattern.rpartition(".")
        for _, module in matching(base, path):
            setattr(module, attribute, getattr(module, attribute) // degree)


def _parameters_with_partial_gradients(base: nn.Module, plan: TensorPlan) -> list[nn.Parameter]:
    """Norms within a head: every rank has the whole weight, but its gradient covers only its own heads."""
    patterns = [path for path, style in plan.styles.items() if style == PARTIAL_GRADIENT]
    return [
        parameter for pattern in patterns for _, module in matching(base, pattern) for parameter in module.parameters()
    ]


def _sharded_and_replicated(parameters: Iterable[nn.Parameter]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Local gradients of the sharded parameters, and of those that every rank holds in full."""
    cut: list[nn.Parameter] = []
    whole: list[nn.Parameter] = []
    for parameter in parameters:
        is_cut = isinstance(parameter, DTensor) and any(placement.is_shard() for placement in parameter.placements)
        (cut if is_cut else whole).append(parameter)
    return local_gradients(cut), local_gradients(whole)


def _whole(tensor: torch.Tensor) -> torch.Tensor:
    return (tensor.full_tensor() if isinstance(tensor, DTensor) else tensor).cpu()


def build(setup: Setup) -> TrainingStrategy:
    return TensorParallel(setup)
