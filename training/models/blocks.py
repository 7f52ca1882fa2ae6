"""The repeated blocks of a transformers model, and what is kept of their activations.

Strategies shard, distribute or recompute a model block by block.
"""

from contextlib import AbstractContextManager, nullcontext
from functools import partial

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from traindyno.core.suite.settings import Settings


def repeated_blocks(model: nn.Module) -> list[nn.Module]:
    """The blocks of the heaviest list of modules of one class. Outer ones are first: ALBERT gives its shared groups."""
    candidates = [
        list(module) for module in model.modules() if isinstance(module, nn.ModuleList) and _is_uniform(module)
    ]
    return max(candidates, key=_parameter_count, default=[])


def _is_uniform(modules: nn.ModuleList) -> bool:
    return len({type(module) for module in modules}) == 1


def _parameter_count(blocks: list[nn.Module]) -> int:
    return sum(parameter.numel() for block in blocks for parameter in block.parameters())


def enable_checkpointing(model: nn.Module) -> None:
    """Recomputes block by block. Transformers' own function omits ALBERT, which calls each block several times."""
    for block in repeated_blocks(model):
        block.forward = partial(checkpoint, block.forward, use_reentrant=False)


def saved_activations(settings: Settings) -> AbstractContextManager[object]:
    """The context of the forward pass: it may offload what the backward pass needs to the host's memory."""
    if not settings.activation_offloading:
        return nullcontext()
    return torch.autograd.graph.save_on_cpu(pin_memory=torch.cuda.is_available())
