"""Gradients that no wrapper exchanges: averaged over replicas, measured and clipped across a model's parts."""

from collections.abc import Iterable

import torch
from torch import distributed, nn
from torch.distributed import ProcessGroup
from torch.distributed.tensor import DTensor


def local_gradients(parameters: Iterable[nn.Parameter]) -> list[torch.Tensor]:
    """This rank's slices, where a gradient is spread over ranks."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    return [gradient.to_local() if isinstance(gradient, DTensor) else gradient for gradient in gradients]


def sum_gradients(parameters: Iterable[nn.Parameter], group: ProcessGroup, *, divisor: int = 1) -> None:
    """In place, in one message per number format."""
    by_type: dict[torch.dtype, list[torch.Tensor]] = {}
    for gradient in local_gradients(parameters):
        by_type.setdefault(gradient.dtype, []).append(gradient)
    for gradients in by_type.values():
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        distributed.all_reduce(flat, group=group)
        flat /= divisor
        for gradient, values in zip(
            gradients, torch.split_with_sizes(flat, [g.numel() for g in gradients]), strict=True
        ):
            gradient.copy_(values.view_as(gradient))


def sum_of_squares(gradients: list[torch.Tensor], device: torch.device) -> torch.Tensor:
    if not gradients:
        return torch.zeros((), device=device)
    return torch.stack(torch._foreach_norm(gradients)).float().square().sum()


def scale_to_norm(gradients: list[torch.Tensor], norm: torch.Tensor, max_norm: float) -> None:
    """As torch.nn.utils.clip_grad_norm_ does, of a norm that is already known."""
    if gradients:
        torch._foreach_mul_(gradients, torch.clamp(max_norm / (norm + 1e-6), max=1.0))
