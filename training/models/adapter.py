"""Adds LoRA to a blueprint, by peft: only matrices beside the layers of a model are trained.

peft replaces layers within the model, which gives the model's own tensors other names. No strategy
knows of it: the blueprint gives the values by the new names. Tensors have any shape [...].
"""

import re
import warnings
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from typing import Any
from zlib import crc32

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from traindyno.core.run.settings import ALL_LINEAR, Adapter
from traindyno.core.suite.choices import Task
from training.errors import WorkloadError
from training.models.blueprint import Blueprint, IsWanted, NamedValues, Readable
from training.models.config_numbers import NOT_BUILT

NAME = "default"
# The parts of a path that transformers gives to what chooses a mixture's experts, and to layers of
# images and sound, which no text passes.
ROUTER = re.compile(r"router|gate|shared_expert_gate|.*_router")
OTHER_INPUT = re.compile(r".*(vision|image|img|audio).*")
# peft's names of the tasks; it has no name for a masked model.
TASK_TYPES = {Task.CAUSAL_LM: "CAUSAL_LM", Task.SEQUENCE_CLASSIFICATION: "SEQ_CLS"}
SHOWN = 8
Shapes = dict[str, tuple[int, ...]]


def import_peft() -> Any:
    import peft  # noqa: PLC0415  (only runs with an adapter need it: a second)

    return peft


def lora_config(model: PreTrainedModel, adapter: Adapter, task: Task) -> Any:
    """peft's configuration of the adapter.

    Raises WorkloadError if a target is no layer of ``model``, or smaller than the rank.
    """
    modules, parameters = _targets(model, adapter)
    for path, shape in (modules | parameters).items():
        if adapter.rank > min(shape[-2:]):
            raise WorkloadError(
                f"adapter.rank is {adapter.rank}, and {path} is {' × '.join(map(str, shape))}; "
                f"expected a rank of at most {min(shape[-2:])}, or targets without this layer"
            )
    return import_peft().LoraConfig(
        task_type=TASK_TYPES.get(task),
        r=adapter.rank,
        lora_alpha=adapter.scale,
        lora_dropout=adapter.dropout,
        target_modules=sorted(modules),
        target_parameters=sorted(parameters) or None,
    )


def _targets(model: PreTrainedModel, adapter: Adapter) -> tuple[Shapes, Shapes]:
    """The layers, and the weights of experts, that the adapter is beside, with their shapes."""
    linear = {
        path: tuple(module.weight.shape)
        for path, module in model.named_modules()
        if isinstance(module, nn.Linear | Conv1D) and not is_head(path, module, model)
    }
    stacked = {
        path: tuple(parameter.shape)
        for path, parameter in model.named_parameters()
        if parameter.ndim == len("EIO")
    }
    modules: Shapes = {}
    parameters: Shapes = {}
    for target in adapter.targets:
        if target == ALL_LINEAR:
            layers = {path: shape for path, shape in linear.items() if not _is_left_out(path)}
        else:
            layers = {path: shape for path, shape in linear.items() if _ends_with(path, target)}
            parameters |= {
                path: shape for path, shape in stacked.items() if _ends_with(path, target)
            }
        modules |= layers
        if not layers and not any(_ends_with(path, target) for path in parameters):
            raise _unknown_target(target, [*linear, *stacked])
    return modules, parameters


def _unknown_target(target: str, paths: list[str]) -> WorkloadError:
    ends = sorted({path.rpartition(".")[2] for path in paths})
    named = get_close_matches(target, ends, n=3, cutoff=0.5) or ends[:SHOWN]
    return WorkloadError(
        f"adapter.targets: no layer of the model ends with {target!r}; expected {ALL_LINEAR}, or "
        f"the ends of paths of its linear layers, such as {', '.join(named)}"
    )


def _ends_with(path: str, target: str) -> bool:
    return path == target or path.endswith(f".{target}")


def _is_left_out(path: str) -> bool:
    return is_router(path) or any(OTHER_INPUT.fullmatch(part) for part in path.split("."))


def is_router(path: str) -> bool:
    return any(ROUTER.fullmatch(part) for part in path.split("."))


def is_head(path: str, module: nn.Module, model: PreTrainedModel) -> bool:
    """Whether it gives the logits; all that a classifier has outside its base model is its head."""
    head = model.get_output_embeddings()  # type: ignore[no-untyped-call]
    return module is head if head is not None else path.partition(".")[0] in head_names(model)


def head_names(model: PreTrainedModel) -> list[str]:
    """The parts of a classifier beside its base model, which are new and trained in full."""
    if model.get_output_embeddings() is not None:  # type: ignore[no-untyped-call]
        return []
    return [
        name
        for name, child in model.named_children()
        if name != model.base_model_prefix and any(True for _ in child.parameters())
    ]


def inject(model: PreTrainedModel, config: Any) -> PreTrainedModel:
    """Replaces the model's target layers by peft's, whose own weights are on the meta device.

    Raises WorkloadError if peft refuses them.
    """
    heads = [getattr(model, name) for name in head_names(model)]
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="fan_in_fan_out is set to False")
            import_peft().inject_adapter_in_model(config, model, low_cpu_mem_usage=True)
    except NOT_BUILT as error:
        reason = str(error).partition(". ")[0]  # then come sets, whose order differs
        raise WorkloadError(
            f"peft adds no adapter to this {model.config.model_type}: {reason}; expected "
            "adapter.targets that it accepts"
        ) from error
    for head in heads:
        head.requires_grad_(True)
    return model


def with_adapter(
    blueprint: Blueprint, config: Any, seed: int, saved: Mapping[str, Readable] | None
) -> Blueprint:
    """The blueprint of the model with an adapter.

    The adapter has the ``saved`` values, or is a new one, which changes nothing yet. As in the
    model, each layer's initial values have their own seed.
    """
    names = {id(tensor): name for name, tensor in _named(blueprint.model)}
    model = inject(blueprint.model, config)
    new_names = {names[id(tensor)]: name for name, tensor in _named(model) if id(tensor) in names}
    # Copies of the new matrices alone: the strategy rewrites the model's.
    layers = {
        path: deepcopy(layer, {id(layer.base_layer): layer.base_layer})
        for path, layer in lora_layers(model)
    }
    if saved is not None:
        values = partial(_with_saved, blueprint, new_names, saved)
    else:
        values = partial(_values, blueprint, new_names, layers, seed)
    return replace(blueprint, model=model, values=values, adapter=config)


def _named(model: nn.Module) -> list[tuple[str, torch.Tensor]]:
    """The model's tensors by name.

    Of a tensor with several names, the first name comes last, so that a mapping keeps it.
    """
    return list(reversed(model.state_dict(keep_vars=True).items()))


def lora_layers(model: nn.Module) -> Iterator[tuple[str, Any]]:
    return ((path, module) for path, module in model.named_modules() if hasattr(module, "lora_A"))


def _with_saved(
    blueprint: Blueprint,
    new_names: Mapping[str, str],
    saved: Mapping[str, Readable],
    is_wanted: IsWanted,
) -> NamedValues:
    def is_of_base(name: str) -> bool:
        return is_wanted(new_names.get(name, name)) and name not in saved

    for name, whole in blueprint.values(is_of_base):
        yield new_names.get(name, name), whole
    yield from ((name, whole) for name, whole in saved.items() if is_wanted(name))


def _values(
    blueprint: Blueprint,
    new_names: Mapping[str, str],
    layers: Mapping[str, Any],
    seed: int,
    is_wanted: IsWanted,
) -> NamedValues:
    for name, whole in blueprint.values(lambda name: is_wanted(new_names.get(name, name))):
        yield new_names.get(name, name), whole
    for path, layer in layers.items():
        named = {
            f"{path}.{part}.{NAME}.weight": getattr(layer, part)[NAME]
            for part in ("lora_A", "lora_B")
        }
        if any(map(is_wanted, named)):
            empty = {name: matrix.weight for name, matrix in named.items()}
            for matrix in named.values():
                values = torch.zeros(matrix.weight.shape, dtype=torch.float32)
                matrix._parameters["weight"] = nn.Parameter(values, requires_grad=False)
            torch.default_generator.manual_seed(crc32(f"{seed}/{path}".encode()))
            layer.reset_lora_parameters(NAME, True)
            yield from ((name, matrix.weight) for name, matrix in named.items() if is_wanted(name))
            for name, matrix in named.items():
                matrix._parameters["weight"] = empty[name]
    torch.manual_seed(seed)
