"""Tensor parallelism: each block's matrices are sharded over ranks that work on the same samples, with DTensor.

Parameters, gradients and their parts have any shape [...].
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import distributed, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, ParallelStyle, RowwiseParallel, parallelize_module
from transformers import PreTrainedModel

from training.data.batch import Batch
from training.models.blueprint import Readable
from training.models.gradients import local_gradients, scale_to_norm, sum_gradients, sum_of_squares
from training.models.objective import Objective
from training.models.tensor_plans import (
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
from training.strategies import Setup, TrainingStrategy
from training.strategies.conv1d import ConvertedLayers
from training.strategies.replicas import Replicas
from training.strategies.whole_model import WholeModelStrategy


class TensorParallel(WholeModelStrategy):
    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._replicas = Replicas(setup, "tensor")
        self.data_rank = self._replicas.data_rank
        self.data_world_size = self._replicas.data_world_size
        self._sharded: ShardedMatrices
        self._partial: list[nn.Parameter]

    def _cut(self, objective: Objective) -> None:
        self._sharded = shard_matrices(objective.model, self._replicas.inner_mesh)

    def _as_held(self, name: str, whole: Readable) -> Readable:
        return self._sharded.converted.convert(name, whole, f"{self._objective.model.base_model_prefix}.")

    def _wrap(self, objective: Objective) -> nn.Module:
        self._partial = [getattr(module, name) for module, name in self._sharded.partial]
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
        model, ranks = self._objective.model, self._replicas.ranks[0]
        for name, tensor in model.state_dict().items():
            if self._setup.topology.is_first:
                whole = _receive(tensor, ranks) if _is_cut(tensor) else _local(tensor).cpu()
                restored = self._sharded.converted.restore(name, whole, f"{model.base_model_prefix}.")
                del whole  # a copy of it may have been restored
                yield name, restored
                del restored
            elif _is_cut(tensor):
                distributed.send(_local(tensor).contiguous(), dst=ranks[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardedMatrices:
    """``partial``: parameters, by module and name, of whose gradient each rank has the part of its own heads."""

    converted: ConvertedLayers
    partial: list[tuple[nn.Module, str]]


def shard_matrices(model: PreTrainedModel, mesh: DeviceMesh) -> ShardedMatrices:
    """Shards a model on the meta device, or a stage of it, by its plan. ``mesh`` has one dimension."""
    plan, base, degree = plan_for(model), model.base_model, mesh.size()
    check_divisible(model, plan, degree)
    converted = ConvertedLayers(base, plan, degree)
    parallelize_module(base, mesh, _styles(plan))
    _divide_head_counts(base, plan, degree)
    return ShardedMatrices(converted=converted, partial=_with_partial_gradients(base, plan))


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


def _with_partial_gradients(base: nn.Module, plan: TensorPlan) -> list[tuple[nn.Module, str]]:
    """The norms within a head: every rank has the whole weight, but its gradient covers only its own heads."""
    patterns = [path for path, style in plan.styles.items() if style == PARTIAL_GRADIENT]
    modules = (module for pattern in patterns for _, module in matching(base, pattern))
    return [(module, name) for module in modules for name, _ in module.named_parameters(recurse=False)]


def _sharded_and_replicated(parameters: Iterable[nn.Parameter]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Returns local gradients of the sharded parameters, and of those that every rank holds in full."""
    cut: list[nn.Parameter] = []
    whole: list[nn.Parameter] = []
    for parameter in parameters:
        (cut if _is_cut(parameter) else whole).append(parameter)
    return local_gradients(cut), local_gradients(whole)


def _is_cut(tensor: torch.Tensor) -> bool:
    return isinstance(tensor, DTensor) and any(placement.is_shard() for placement in tensor.placements)


def _local(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def _receive(tensor: torch.Tensor, ranks: Sequence[int]) -> torch.Tensor:
    """Returns the whole of a tensor that is sharded over ``ranks``, on the CPU of the first of them.

    Beside it there is one rank's part at a time. ``full_tensor`` makes up to three copies, and on every rank.
    """
    assert isinstance(tensor, DTensor)
    (placement,) = tensor.placements
    assert isinstance(placement, Shard)
    local = tensor.to_local()
    whole = torch.empty(tensor.shape, dtype=tensor.dtype)
    for rank, place in zip(ranks, whole.chunk(len(ranks), placement.dim), strict=True):
        part = local if rank == ranks[0] else torch.empty(place.shape, dtype=tensor.dtype, device=local.device)
        if rank != ranks[0]:
            distributed.recv(part, src=rank)
        place.copy_(part)
    return whole


def build(setup: Setup) -> TrainingStrategy:
    return TensorParallel(setup)
