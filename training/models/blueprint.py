"""A model on the meta device with the source of its values.

A process materialises only the part that it keeps.

Each module's initial values have their own seed, made of the run's seed and the module's name: they
are the same in every process, whatever else the process initialises. Strategies shard, distribute
or recompute a model block by block. The tensors are parameters and buffers, of any shape [...].
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol
from zlib import crc32

import torch
from torch import nn
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedConfig, PreTrainedModel, initialization

from traindyno.core.run.settings import Settings
from training.models.four_bits import empty_of_4_bits, is_of_4_bits, quantise
from training.models.optimizer import mark_decayed

IsWanted = Callable[[str], bool]
NamedValues = Iterator[tuple[str, "Readable"]]
AsHeld = Callable[[str, "Readable"], "Readable"]


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Replaces an attribute for a while, and restores it, after an error too.

    The owner has the attribute itself; an inherited one raises KeyError.
    """
    original = vars(owner)[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, original)


class Readable(Protocol):
    """A whole tensor, in memory or in a file: indexing reads a part of it."""

    def __getitem__(self, index: Any, /) -> torch.Tensor: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Blueprint:
    """A model that is not materialised yet."""

    #: The model, with values in its buffers only.
    model: PreTrainedModel
    #: The configuration from which transformers built the model. The model's own may be a part of
    #: it, the configuration of the text.
    config: PreTrainedConfig
    #: Yields the parameters of the wanted names one by one, by transformers' names. A tied
    #: parameter is yielded once, by the first of its names.
    values: Callable[[IsWanted], NamedValues]
    #: peft's configuration of the model's adapter, if it has one.
    adapter: Any = None

    def materialise(
        self,
        device: torch.device,
        *,
        is_kept: Callable[[torch.Tensor], bool] = lambda _: True,
        as_held: AsHeld = lambda _, whole: whole,
    ) -> PreTrainedModel:
        """Returns ``model``, its kept parameters on the device: plain tensors whole, of DTensors
        this process's part.

        ``as_held`` gives a whole tensor the model's layout, if a strategy has changed that.
        """
        allocate(self.model, device, is_kept)
        mark_decayed(self.model)
        named = self.model.state_dict(keep_vars=True)
        fill(
            {name: tensor for name, tensor in named.items() if tensor.device.type != "meta"},
            self.values,
            as_held,
        )
        return self.model


@contextmanager
def without_values() -> Iterator[None]:
    """Parameters of models that are built inside are on the meta device; buffers are small and keep
    their values.

    Weights are not tied: call ``tie_weights`` of the built model.
    """
    register = nn.Module.register_parameter

    def register_on_meta(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        if parameter is not None and parameter.device.type != "meta":
            parameter = nn.Parameter(
                parameter.detach().to("meta"), requires_grad=parameter.requires_grad
            )
        register(module, name, parameter)

    with (
        initialization.no_init_weights(),
        replaced(nn.Module, "register_parameter", register_on_meta),
    ):
        yield


def allocate(
    model: nn.Module, device: torch.device, is_kept: Callable[[torch.Tensor], bool]
) -> None:
    """Allocate memory without values for the kept parameters, and move buffers.

    Tied parameters stay tied.
    """
    made: dict[int, nn.Parameter] = {}
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None and is_kept(parameter):
                if id(parameter) not in made:
                    made[id(parameter)] = _empty(parameter, device)
                module._parameters[name] = made[id(parameter)]
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = buffer.to(device)


def _empty(parameter: nn.Parameter, device: torch.device) -> nn.Parameter:
    if is_of_4_bits(parameter):
        return empty_of_4_bits(parameter, device)
    empty = torch.empty_like(parameter, device=device)
    return nn.Parameter(empty, requires_grad=parameter.requires_grad)


def fill(
    targets: Mapping[str, torch.Tensor], values: Callable[[IsWanted], NamedValues], as_held: AsHeld
) -> None:
    """Copy into each target its part of the value of its name.

    Raises RuntimeError if a parameter gets none.
    """
    filled: set[int] = set()
    with torch.no_grad():
        for name, whole in values(targets.__contains__):
            target = targets[name]
            _copy(as_held(name, whole), target)
            filled.add(id(target))
            del whole
    empty = [
        name
        for name, target in targets.items()
        if isinstance(target, nn.Parameter) and id(target) not in filled
    ]
    if empty:
        raise RuntimeError(
            f"no value was given for {', '.join(empty[:3])}; expected one for every parameter"
        )


def _copy(whole: Readable, target: torch.Tensor) -> None:
    if is_of_4_bits(target):
        quantise(whole[...], target)
        return
    if not isinstance(target, DTensor):
        target.copy_(whole[...])
        return
    shape, offset = compute_local_shape_and_global_offset(
        target.shape, target.device_mesh, target.placements
    )
    local = target.to_local()
    if local.numel():
        part = whole[
            tuple(slice(begin, begin + size) for begin, size in zip(offset, shape, strict=True))
        ]
        local.copy_(part)


def seeded_values(skeleton: PreTrainedModel, seed: int, is_wanted: IsWanted) -> NamedValues:
    """Yields values of transformers' own initialisation.

    ``skeleton`` is on the meta device and stays there.

    Sets the seed of PyTorch's generator; after the last value it is ``seed``.
    """
    given: set[int] = set()
    for path, module in skeleton.named_modules():
        new = {name for name, parameter in _own(module, path) if id(parameter) not in given}
        given |= {id(parameter) for _, parameter in _own(module, path)}
        if any(map(is_wanted, new)):
            # The generator of the CPU alone, on which the values are made: torch.manual_seed notes
            # a stack for each other device.
            torch.default_generator.manual_seed(crc32(f"{seed}/{path}".encode()))
            initialised = _initialise(skeleton, module, path)
            yield from ((name, initialised.pop(name)) for name in sorted(new) if is_wanted(name))
    torch.manual_seed(seed)


def _initialise(skeleton: PreTrainedModel, module: nn.Module, path: str) -> dict[str, torch.Tensor]:
    """Initialises the module's own parameters.

    The modules around it follow: some initialise their children again.
    """
    empty = dict(module._parameters)
    for name, parameter in empty.items():
        if parameter is not None:
            values = torch.zeros(parameter.shape, dtype=parameter.dtype)
            module._parameters[name] = nn.Parameter(values, requires_grad=False)
    with torch.no_grad():
        for around, initialise in reversed(list(_from_outside(skeleton, path))):
            initialise(around)
    initialised: dict[str, torch.Tensor] = dict(_own(module, path))
    module._parameters.update(empty)
    return initialised


def _from_outside(
    skeleton: PreTrainedModel, path: str
) -> Iterator[tuple[nn.Module, Callable[[nn.Module], None]]]:
    """The modules from the model down to the path, each with the initialisation of the model that
    it belongs to.
    """
    module: nn.Module = skeleton
    model = skeleton
    yield module, model._init_weights
    for name in path.split(".") if path else ():
        module = module.get_submodule(name)
        model = module if isinstance(module, PreTrainedModel) else model
        yield module, model._init_weights


def _own(module: nn.Module, path: str) -> Iterator[tuple[str, nn.Parameter]]:
    return module.named_parameters(path, recurse=False, remove_duplicate=False)


def repeated_blocks(model: nn.Module) -> list[nn.Module]:
    """The blocks of the heaviest list of modules of one class.

    Outer ones are first: ALBERT gives its shared groups.
    """
    lists = [list(module) for module in model.modules() if isinstance(module, nn.ModuleList)]
    candidates = [blocks for blocks in lists if len({type(block) for block in blocks}) == 1]
    return max(candidates, key=_parameter_count, default=[])


def _parameter_count(blocks: list[nn.Module]) -> int:
    return sum(parameter.numel() for block in blocks for parameter in block.parameters())


def enable_checkpointing(model: nn.Module) -> None:
    """Recomputes block by block.

    Transformers' own function omits ALBERT, which calls each block several times.
    """
    for block in repeated_blocks(model):
        block.forward = partial(checkpoint, block.forward, use_reentrant=False)


def saved_activations(settings: Settings) -> AbstractContextManager[object]:
    """The context of the forward pass: it may offload what the backward pass needs to the host's
    memory.
    """
    if not settings.activation_offloading:
        return nullcontext()
    return torch.autograd.graph.save_on_cpu(pin_memory=torch.cuda.is_available())
