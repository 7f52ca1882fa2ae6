"""Trading time for memory: recompute a block's activations, or keep saved ones in the host's memory."""

from contextlib import AbstractContextManager, nullcontext

import torch
from transformers import PreTrainedModel

from traindyno.core.suite import Settings


def enable_checkpointing(model: PreTrainedModel) -> None:
    model.activation_checkpointing_enable({"use_reentrant": False})


def saved_activations(settings: Settings) -> AbstractContextManager[object]:
    """Around the forward pass."""
    if not settings.activation_offloading:
        return nullcontext()
    return torch.autograd.graph.save_on_cpu(pin_memory=torch.cuda.is_available())
