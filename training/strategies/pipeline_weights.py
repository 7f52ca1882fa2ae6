"""The weights of a model by the stages that hold them, put together for saving.

Parameters have any shape [...].
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
from torch import distributed, nn
from torch.distributed import ProcessGroup
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._utils import _compute_local_shape_and_global_offset
from transformers import PreTrainedModel

from training.models.gradients import sum_gradients
from training.strategies.whole_model import each_once

Holders = tuple[int, ...]


class PipelineWeights:
    """Which inner ranks hold each weight of a pipeline's model.

    It is equal on every rank, because each splits the same model in the same way.
    """

    def __init__(
        self, model: PreTrainedModel, parts: Sequence[Iterable[nn.Module]], inner_rank: int
    ) -> None:
        """Notes which inner ranks hold each weight of the model.

        Args:
            model: The whole model.
            parts: The stages of each inner rank.
            inner_rank: The inner rank of this process.
        """
        held = [
            {id(tensor) for stage in stages for tensor in (*stage.parameters(), *stage.buffers())}
            for stages in parts
        ]
        self._model = model
        self._inner_rank = inner_rank
        self._undivided = self._saved()
        self._holders: dict[str, Holders] = {
            name: tuple(rank for rank, ids in enumerate(held) if id(tensor) in ids)
            for name, tensor in self._undivided.items()
        }
        self._groups: dict[Holders, ProcessGroup] = {}

    def make_groups(self, replicas: Sequence[Sequence[int]]) -> None:
        """Makes one for each set of ranks that share weights; ``replicas`` are the job's ranks,
        replica by replica.
        """
        for holders in sorted({holders for holders in self._holders.values() if len(holders) > 1}):
            for ranks in replicas:
                members = [ranks[holder] for holder in holders]
                group = distributed.new_group(members)
                if distributed.get_rank() in members:
                    self._groups[holders] = group

    def parameters(self) -> list[nn.Parameter]:
        return self._parameters(lambda holders: self._inner_rank in holders)

    def first_held(self) -> list[nn.Parameter]:
        """The weights that no earlier rank holds: every weight of the model belongs to one rank."""
        return self._parameters(lambda holders: holders[0] == self._inner_rank)

    def held(self) -> dict[str, torch.Tensor]:
        """This rank's parameters and buffers, each once."""
        return each_once(
            {
                name: tensor
                for name, tensor in self._saved().items()
                if self._inner_rank in self._holders[name]
            }
        )

    def sum_shared_gradients(self) -> None:
        for shared, group in self._groups.items():
            sum_gradients(self._parameters(lambda holders, shared=shared: holders == shared), group)  # type: ignore[misc]

    def tie_again(self) -> None:
        """After a stage's modules have got other parameters: gives them to all modules that are
        tied to those.
        """
        changed: dict[int, torch.Tensor] = {}
        for name, tensor in self._saved().items():
            if tensor is not self._undivided[name]:
                changed.setdefault(id(self._undivided[name]), tensor)
        for name, undivided in self._undivided.items():
            tensor = changed.get(id(undivided), undivided)
            if isinstance(tensor, nn.Parameter):
                path, _, attribute = name.rpartition(".")
                self._model.get_submodule(path)._parameters[attribute] = tensor

    def stream(
        self, ranks: Sequence[int], restored: Callable[[str, torch.Tensor], torch.Tensor]
    ) -> Iterator[tuple[str, torch.Tensor]]:
        """Yields one weight after the other on the first of ``ranks``, nothing elsewhere.

        All processes call it.

        Args:
            ranks: The ranks of one pipeline.
            restored: Gives a whole weight the form that it is saved in.
        """
        rank = distributed.get_rank()
        for name, tensor in self._saved().items():
            holder = self._holders[name][0]
            whole = whole_on(ranks[holder], tensor) if self._inner_rank == holder else None
            if whole is not None:
                made = restored(name, whole)
                del whole  # a copy of it may have been restored
                if rank == ranks[0]:
                    yield name, made
                else:
                    distributed.send(made.contiguous(), dst=ranks[0])
                del made  # before there is memory for the next one
            elif rank == ranks[0] and holder != 0:
                received = torch.empty(tensor.shape, dtype=tensor.dtype)
                distributed.recv(received, src=ranks[holder])
                yield name, received
                del received

    def _parameters(self, is_wanted: Callable[[Holders], bool]) -> list[nn.Parameter]:
        """Each parameter once, also with several names."""
        wanted = {
            id(tensor): tensor
            for name, tensor in self._saved().items()
            if is_wanted(self._holders[name])
        }
        return [tensor for tensor in wanted.values() if isinstance(tensor, nn.Parameter)]

    def _saved(self) -> dict[str, torch.Tensor]:
        return self._model.state_dict(keep_vars=True)


def whole_on(first: int, tensor: torch.Tensor) -> torch.Tensor | None:
    """Returns the whole of ``tensor`` on the CPU of rank ``first``, None on others.

    All that hold a part call it.

    Beside it there is one rank's part at a time. ``full_tensor`` makes up to three copies, and on
    every rank.
    """
    this_rank = distributed.get_rank()
    if not isinstance(tensor, DTensor):
        return tensor.detach().cpu() if this_rank == first else None
    mesh = tensor.device_mesh
    placements = tensor.placements
    one_of_each = tuple(0 if placement.is_replicate() else slice(None) for placement in placements)
    ranks = mesh.mesh[one_of_each].flatten().tolist()
    local = tensor.to_local().detach()
    if first not in ranks or this_rank not in ranks:
        return None
    if this_rank != first:
        if local.numel():
            distributed.send(local.contiguous(), dst=first)
        return None
    whole = torch.empty(tensor.shape, dtype=tensor.dtype)
    for rank in ranks:
        at = (mesh.mesh == rank).nonzero()[0].tolist()
        shape, offset = _compute_local_shape_and_global_offset(
            tensor.shape, mesh.shape, at, placements
        )
        place = whole[
            tuple(slice(begin, begin + size) for begin, size in zip(offset, shape, strict=True))
        ]
        if rank == first:
            place.copy_(local)
        elif place.numel():
            _receive(place, rank, local.device)
    return whole


def _receive(place: torch.Tensor, rank: int, device: torch.device) -> None:
    """Fills ``place`` [...], if it can't be received there, through one part on the device that
    sends.
    """
    if place.is_contiguous() and place.device == device:
        distributed.recv(place, src=rank)
        return
    part = torch.empty(place.shape, dtype=place.dtype, device=device)
    distributed.recv(part, src=rank)
    place.copy_(part)
