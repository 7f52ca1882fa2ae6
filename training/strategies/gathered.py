"""Puts a tensor together of the parts that processes hold. Tensors have any shape [...]."""

import torch
from torch import distributed
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._utils import _compute_local_shape_and_global_offset


def whole_on(first: int, tensor: torch.Tensor) -> torch.Tensor | None:
    """Returns the whole of ``tensor`` on the CPU of rank ``first``, None on others. All that hold a part call it.

    Beside it there is one rank's part at a time. ``full_tensor`` makes up to three copies, and on every rank.
    """
    own = distributed.get_rank()
    if not isinstance(tensor, DTensor):
        return tensor.detach().cpu() if own == first else None
    mesh, placements = tensor.device_mesh, tensor.placements
    one_of_each = tuple(0 if placement.is_replicate() else slice(None) for placement in placements)
    ranks = mesh.mesh[one_of_each].flatten().tolist()
    local = tensor.to_local().detach()
    if first not in ranks or own not in ranks:
        return None
    if own != first:
        if local.numel():
            distributed.send(local.contiguous(), dst=first)
        return None
    whole = torch.empty(tensor.shape, dtype=tensor.dtype)
    for rank in ranks:
        at = (mesh.mesh == rank).nonzero()[0].tolist()
        shape, offset = _compute_local_shape_and_global_offset(tensor.shape, mesh.shape, at, placements)
        place = whole[tuple(slice(begin, begin + size) for begin, size in zip(offset, shape, strict=True))]
        if rank == first:
            place.copy_(local)
        elif place.numel():
            _receive(place, rank, local.device)
    return whole


def _receive(place: torch.Tensor, rank: int, device: torch.device) -> None:
    """Fills ``place`` [...], if it can't be received there, through one part on the device that sends."""
    if place.is_contiguous() and place.device == device:
        distributed.recv(place, src=rank)
        return
    part = torch.empty(place.shape, dtype=place.dtype, device=device)
    distributed.recv(part, src=rank)
    place.copy_(part)
