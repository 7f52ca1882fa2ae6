"""Activation checkpointing (recompute a block's activations) and offloading to the host's memory."""

from contextlib import AbstractContextManager, nullcontext
from functools import partial

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from traindyno.core.suite.settings import Settings
from training.models.blocks import repeated_blocks


def enable_checkpointing(model: nn.Module) -> None:
    """Per block. Transformers' own function omits ALBERT, whose blocks are called several times each."""
    for block in repeated_blocks(model):
        block.forward = partial(checkpoint, block.forward, use_reentrant=False)


def saved_activations(settings: Settings) -> AbstractContextManager[object]:
    """Around the forward pass."""
    if not settings.activation_offloading:
        return nullcontext()
    return torch.autograd.graph.save_on_cpu(pin_memory=torch.cuda.is_available())
