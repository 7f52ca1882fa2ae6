"""A model's initial weights, module by module: a process initialises only modules of which it keeps a part.

Every module has its own seed, made of the run's seed and the module's name. Its values are the same in every
process, whatever else the process initialises. They have any shape [...].
"""

from collections.abc import Callable, Iterator
from zlib import crc32

import torch
from torch import nn
from transformers import PreTrainedModel

from training.models.blueprint import IsWanted, NamedValues


def seeded_values(skeleton: PreTrainedModel, seed: int, is_wanted: IsWanted) -> NamedValues:
    """Yields values of transformers' own initialisation. ``skeleton`` is on the meta device and stays there.

    Sets the seed of PyTorch's generator; after the last value it is ``seed``.
    """
    given: set[int] = set()
    for path, module in skeleton.named_modules():
        new = {name for name, parameter in _own(module, path) if id(parameter) not in given}
        given |= {id(parameter) for _, parameter in _own(module, path)}
        if any(map(is_wanted, new)):
            # Of the CPU alone, on which the values are made: torch.manual_seed notes a stack for each other device.
            torch.default_generator.manual_seed(crc32(f"{seed}/{path}".encode()))
            initialised = _initialise(skeleton, module, path)
            yield from ((name, initialised.pop(name)) for name in sorted(new) if is_wanted(name))
    torch.manual_seed(seed)


def _initialise(skeleton: PreTrainedModel, module: nn.Module, path: str) -> dict[str, torch.Tensor]:
    """Initialises the module's own parameters. The modules around it follow: some initialise their children again."""
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


def _from_outside(skeleton: PreTrainedModel, path: str) -> Iterator[tuple[nn.Module, Callable[[nn.Module], None]]]:
    """The modules from the model down to the path, each with the initialisation of the model that it belongs to."""
    module: nn.Module = skeleton
    model = skeleton
    yield module, model._init_weights
    for name in path.split(".") if path else ():
        module = module.get_submodule(name)
        model = module if isinstance(module, PreTrainedModel) else model
        yield module, model._init_weights


def _own(module: nn.Module, path: str) -> Iterator[tuple[str, nn.Parameter]]:
    return module.named_parameters(path, recurse=False, remove_duplicate=False)
