"""This process's part of a run's state, by names that are the same for any number of processes.

Tensors have any shape [...].
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.distributed.checkpoint.metadata import Metadata, TensorStorageMetadata
from torch.optim import Optimizer

from training.checkpoints.random_states import random_states
from training.strategies import TrainingStrategy

MODEL, OPTIMIZER = "model", "optimizer"
# Tensors of other devices (PyTorch/XLA's) are copied to the host to be written, and back.
WRITTEN_FROM = ("cpu", "cuda")


def state_to_write(strategy: TrainingStrategy, optimizer: Optimizer, rank: int) -> dict[str, torch.Tensor]:
    """Returns the tensors themselves, not copies: the next step changes them."""
    named = strategy.named_tensors()
    names = {id(tensor): name for name, tensor in named.items()}
    state = {f"{MODEL}.{name}": tensor.detach() for name, tensor in named.items()}
    for parameter, values in optimizer.state.items():
        for key, value in values.items():
            if isinstance(value, torch.Tensor):
                state[f"{OPTIMIZER}.{names[id(parameter)]}.{key}"] = value.detach()
    return {name: _on_host(tensor) for name, tensor in (state | random_states(rank)).items()}


def state_to_read(
    strategy: TrainingStrategy, optimizer: Optimizer, metadata: Metadata, rank: int
) -> dict[str, torch.Tensor]:
    """Returns tensors for all that the checkpoint contains for this process; the optimizer's are allocated here."""
    named = strategy.named_tensors()
    names = {id(tensor): name for name, tensor in named.items()}
    state = {f"{MODEL}.{name}": tensor.detach() for name, tensor in named.items()}
    saved = _optimizer_entries(metadata)
    for group in optimizer.param_groups:
        for parameter in filter(strategy.updates, group["params"]):
            entries = saved.get(names[id(parameter)], {})
            values = {key: _like(parameter, entry, group) for key, entry in entries.items()}
            if values:
                optimizer.state[parameter] = values
            state |= {f"{OPTIMIZER}.{names[id(parameter)]}.{key}": value for key, value in values.items()}
    return state | _random_states_in(metadata, rank)


def _optimizer_entries(metadata: Metadata) -> dict[str, dict[str, TensorStorageMetadata]]:
    """The saved entries by the parameter's name, then by the optimizer's own."""
    found: dict[str, dict[str, TensorStorageMetadata]] = {}
    for name, entry in metadata.state_dict_metadata.items():
        kind, _, rest = name.partition(".")
        if kind == OPTIMIZER and isinstance(entry, TensorStorageMetadata):
            parameter, _, key = rest.rpartition(".")
            found.setdefault(parameter, {})[key] = entry
    return found


def _like(parameter: nn.Parameter, entry: TensorStorageMetadata, group: Mapping[str, Any]) -> torch.Tensor:
    """Makes a tensor that is sharded like the parameter, or one number, such as the optimizer's step count."""
    dtype = entry.properties.dtype
    if entry.size == parameter.shape and parameter.ndim:
        return torch.zeros_like(parameter, dtype=dtype, requires_grad=False)
    device = parameter.device if group.get("fused") else torch.device("cpu")
    return torch.zeros(entry.size, dtype=dtype, device=device)


def _random_states_in(metadata: Metadata, rank: int) -> dict[str, torch.Tensor]:
    wanted = random_states(rank)
    entries = ((name, metadata.state_dict_metadata.get(name)) for name in wanted)
    return {
        name: torch.zeros(entry.size, dtype=entry.properties.dtype)
        for name, entry in entries
        if isinstance(entry, TensorStorageMetadata)
    }


def _on_host(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.device.type in WRITTEN_FROM else tensor.cpu()
