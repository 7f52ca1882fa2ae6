"""This process's part of a run's state, by names that are the same for any number of processes.

Tensors have any shape [...].
"""

import json
import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.distributed.checkpoint.metadata import Metadata, TensorStorageMetadata
from torch.optim import Optimizer

from training.strategies import TrainingStrategy

PREFIX = "random"
LARGEST_SEED = 2**63


def random_states(rank: int) -> dict[str, torch.Tensor]:
    """Returns the states by name; each rank has its own names."""
    generator: Any = np.random.get_state(legacy=True)
    _, keys, *rest = generator
    states = {
        "torch": torch.get_rng_state(),
        "python": _from_text(random.getstate()),
        "numpy": _from_text([keys.tolist(), *rest]),
    }
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        states["cuda"] = torch.cuda.get_rng_state()
    return {f"{PREFIX}.{rank}.{name}": state for name, state in states.items()}


def restore_random_states(states: Mapping[str, torch.Tensor], rank: int) -> None:
    own = {name.rpartition(".")[2]: state for name, state in states.items() if name.startswith(f"{PREFIX}.{rank}.")}
    torch.set_rng_state(own["torch"])
    random.setstate(_tuples(_to_value(own["python"])))
    keys, *rest = _to_value(own["numpy"])
    np.random.set_state(("MT19937", np.asarray(keys, dtype=np.uint32), *rest))
    if "cuda" in own and torch.cuda.is_available():
        torch.cuda.set_rng_state(own["cuda"])


def reseed(seed: int, step: int, data_rank: int) -> None:
    """Seed the generators if processes resume that are divided otherwise: those of one replica must draw the same."""
    (drawn,) = np.random.SeedSequence((seed, step, data_rank)).generate_state(1, np.uint64)
    torch.manual_seed(int(drawn) % LARGEST_SEED)
    random.seed(int(drawn))
    np.random.seed(int(drawn) % 2**32)


def _from_text(value: Any) -> torch.Tensor:
    return torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)


def _to_value(text: torch.Tensor) -> Any:
    return json.loads(bytes(text.tolist()))


def _tuples(value: Any) -> Any:
    """The form that ``random.setstate`` needs: tuples, where JSON has lists."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


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
    state |= random_states(rank)
    return {name: each if each.device.type in WRITTEN_FROM else each.cpu() for name, each in state.items()}


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
    for name in random_states(rank):
        entry = metadata.state_dict_metadata.get(name)
        if isinstance(entry, TensorStorageMetadata):
            state[name] = torch.zeros(entry.size, dtype=entry.properties.dtype)
    return state


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
