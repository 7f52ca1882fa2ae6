"""A model on the meta device and the source of its values: a process materialises only the part that it keeps.

The tensors are parameters and buffers, of any shape [...].
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import nn
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset
from transformers import PreTrainedConfig, PreTrainedModel, initialization

from training.models.replacement import replaced


class Readable(Protocol):
    """A whole tensor, in memory or in a file: indexing reads a part of it."""

    def __getitem__(self, index: Any, /) -> torch.Tensor: ...


IsWanted = Callable[[str], bool]
NamedValues = Iterator[tuple[str, Readable]]
AsHeld = Callable[[str, Readable], Readable]


@dataclass(frozen=True, slots=True, kw_only=True)
class Blueprint:
    """``model`` has values in its buffers only. ``values`` gives its parameters one by one, by transformers' names.

    ``config`` is what transformers built the model from. The model's own may be a part of it: that of the text.
    ``values`` yields only the wanted names. A tied parameter is yielded once, by the first of its names.
    """

    model: PreTrainedModel
    config: PreTrainedConfig
    values: Callable[[IsWanted], NamedValues]

    def materialise(
        self,
        device: torch.device,
        *,
        is_kept: Callable[[torch.Tensor], bool] = lambda _: True,
        as_held: AsHeld = lambda _, whole: whole,
    ) -> PreTrainedModel:
        """Returns ``model``, its kept parameters on the device: plain tensors whole, of DTensors this process's part.

        ``as_held`` gives a whole tensor the model's layout, if a strategy has changed that.
        """
        allocate(self.model, device, is_kept)
        named = self.model.state_dict(keep_vars=True)
        fill({name: tensor for name, tensor in named.items() if tensor.device.type != "meta"}, self.values, as_held)
        return self.model


@contextmanager
def without_values() -> Iterator[None]:
    """Parameters of models that are built inside are on the meta device; buffers are small and keep their values.

    Weights are not tied: call ``tie_weights`` of the built model.
    """
    register = nn.Module.register_parameter

    def register_on_meta(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        if parameter is not None and parameter.device.type != "meta":
            parameter = nn.Parameter(parameter.detach().to("meta"), requires_grad=parameter.requires_grad)
        register(module, name, parameter)

    with initialization.no_init_weights(), replaced(nn.Module, "register_parameter", register_on_meta):
        yield


def allocate(model: nn.Module, device: torch.device, is_kept: Callable[[torch.Tensor], bool]) -> None:
    """Allocate memory without values for the kept parameters, and move buffers. Tied parameters stay tied."""
    made: dict[int, nn.Parameter] = {}
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None and is_kept(parameter):
                if id(parameter) not in made:
                    empty = torch.empty_like(parameter, device=device)
                    made[id(parameter)] = nn.Parameter(empty, requires_grad=parameter.requires_grad)
                module._parameters[name] = made[id(parameter)]
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = buffer.to(device)


def fill(targets: Mapping[str, torch.Tensor], values: Callable[[IsWanted], NamedValues], as_held: AsHeld) -> None:
    """Copy into each target its part of the value of its name. Raises RuntimeError if a parameter gets none."""
    filled: set[int] = set()
    with torch.no_grad():
        for name, whole in values(targets.__contains__):
            target = targets[name]
            _copy(as_held(name, whole), target)
            filled.add(id(target))
            del whole
    empty = [name for name, target in targets.items() if isinstance(target, nn.Parameter) and id(target) not in filled]
    if empty:
        raise RuntimeError(f"no value was given for {', '.join(empty[:3])}; expected one for every parameter")


def _copy(whole: Readable, target: torch.Tensor) -> None:
    if not isinstance(target, DTensor):
        target.copy_(whole[...])
        return
    shape, offset = compute_local_shape_and_global_offset(target.shape, target.device_mesh, target.placements)
    local = target.to_local()
    if local.numel():
        own = whole[tuple(slice(begin, begin + size) for begin, size in zip(offset, shape, strict=True))]
        local.copy_(own)
