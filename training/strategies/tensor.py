"""Tensor parallelism: each block's matrices are sharded over ranks that work on the same samples, with DTensor.

Parameters, gradients and their parts have any shape [...].
"""

from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import distributed, nn
from torch.distributed.tensor import DTensor, Shard

from training.data.batch import Batch
from training.models.blueprint import Readable
from training.models.gradients import local_gradients, scale_to_norm, sum_gradients, sum_of_squares
from training.models.objective import Objective
from training.strategies import Setup, TrainingStrategy
from training.strategies.replicas import Replicas
from training.strategies.tensor_layers import DividedLayers, check_replicated_gradients, checked_plan, is_cut
from training.strategies.whole_model import WholeModelStrategy


class TensorParallel(WholeModelStrategy):
    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._replicas = Replicas(setup, "tensor")
        self.data_rank = self._replicas.data_rank
        self.data_world_size = self._replicas.data_world_size
        self._divided: DividedLayers
        self._partial: list[nn.Parameter]
        self._are_gradients_checked = False

    def _cut(self, objective: Objective) -> None:
        model = objective.model
        plan = checked_plan(model, self._setup.settings.tensor_plan, self._replicas.degree)
        self._divided = DividedLayers(model, self._replicas.inner_mesh, plan)

    def _as_held(self, name: str, whole: Readable) -> Readable:
        return self._divided.converted.convert(name, whole, self._divided.prefix)

    def _wrap(self, objective: Objective) -> nn.Module:
        self._partial = self._divided.partial_gradients()
        return objective

    def _after_backward(self) -> None:
        sum_gradients(self._partial, self._replicas.inner_group)
        if not self._are_gradients_checked:
            check_replicated_gradients(self._objective.model.named_parameters(), self._replicas.inner_group)
            self._are_gradients_checked = True
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
        ranks = self._replicas.ranks[0]
        for name, tensor in self._objective.model.state_dict().items():
            if self._setup.topology.is_first:
                whole = _receive(tensor, ranks) if is_cut(tensor) else _local(tensor).cpu()
                restored = self._divided.converted.restore(name, whole, self._divided.prefix)
                del whole  # a copy of it may have been restored
                yield name, restored
                del restored
            elif is_cut(tensor):
                distributed.send(_local(tensor).contiguous(), dst=ranks[0])


def _sharded_and_replicated(parameters: Iterable[nn.Parameter]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Returns local gradients of the sharded parameters, and of those that every rank holds in full."""
    cut: list[nn.Parameter] = []
    whole: list[nn.Parameter] = []
    for parameter in parameters:
        (cut if is_cut(parameter) else whole).append(parameter)
    return local_gradients(cut), local_gradients(whole)


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
