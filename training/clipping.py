"""Gradient clipping in few calls: PyTorch's own goes through a CPU's parameters one by one."""

from collections.abc import Iterable

import torch
from torch import nn

LEAST_NORM = 1e-6


def clip_by_norm(parameters: Iterable[nn.Parameter], max_norm: float) -> None:
    """As ``torch.nn.utils.clip_grad_norm_``, for whole gradients on one device; sharded ones go to PyTorch."""
    trained = list(parameters)
    gradients = [parameter.grad for parameter in trained if parameter.grad is not None]
    if any(type(gradient) is not torch.Tensor for gradient in gradients):
        nn.utils.clip_grad_norm_(trained, max_norm)
        return
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    torch._foreach_mul_(gradients, (max_norm / (norm + LEAST_NORM)).clamp(max=1.0))
