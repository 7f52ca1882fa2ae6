"""Checks by names, shapes and types whether stored weights belong to the model.

Weights that mean something else than their numbers say, such as quantised ones, are refused:
transformers has a loader for each format, and a run would train other values. Tensors have any
shape [...].
"""

from collections.abc import Iterator, Mapping
from pickle import UnpicklingError
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import convert_and_load_state_dict_in_model
from transformers.modeling_utils import LoadStateDictConfig
from transformers.utils import SAFE_WEIGHTS_NAME, WEIGHTS_NAME
from transformers.utils.logging import (
    disable_progress_bar,
    enable_progress_bar,
    is_progress_bar_enabled,
)

from traindyno.core.suite.choices import Task
from training.errors import WorkloadError, explained
from training.models.model import empty_model
from training.models.saved_values import find_files, is_of_base, read_header

DEQUANTISE = (
    "expected plain weights (float32, float16 or bfloat16): dequantise the model first, then save "
    "it"
)
SHOWN = 3


def check_saved(
    task: Task, config: PreTrainedConfig, model_path: str, revision: str | None
) -> Iterator[str]:
    """Yields what is wrong, with what would be accepted.

    ``config`` is the stored one, but for the number of labels.
    """
    try:
        with explained(f"the weights of {model_path}"):
            files = find_files(model_path, revision)
            stored = {name: tensor for file in files for name, tensor in read_header(file).items()}
        model = empty_model(task, config)
    except (SafetensorError, RuntimeError, EOFError, UnpicklingError) as error:
        why = f"it is cut off, damaged or has more than weights ({' '.join(str(error).split())})"
        yield (
            f"a file of its weights can't be loaded: {why}; expected the whole file of "
            f"{SAFE_WEIGHTS_NAME}"
        )
        return
    except WorkloadError as error:
        yield " ".join(str(error).split())
        return
    named = getattr(config, "transformers_weights", None)
    if named is not None or not stored:
        reason = f"its config.json names {named} as its weights" if named else "it has no weights"
        yield (
            f"{reason}; expected {SAFE_WEIGHTS_NAME}, {WEIGHTS_NAME}, or their shards with an index"
        )
        return
    yield from _check_names(task, model, stored)


def _check_names(
    task: Task, model: PreTrainedModel, stored: Mapping[str, torch.Tensor]
) -> Iterator[str]:
    """Compares ``stored`` [...], by name, with the names, shapes and types of the model."""
    loading = _loaded(model, stored)
    odd = {
        name: tensor
        for name, tensor in stored.items()
        if not tensor.is_floating_point() or tensor.itemsize < 2
    }
    buffers = {name for name, _ in model.named_buffers()}
    prefix = model.base_model_prefix
    odd = {name: tensor for name, tensor in odd.items() if not buffers & {name, f"{prefix}.{name}"}}
    odd = {name: tensor for name, tensor in odd.items() if _is_in_a_layer(name, model)}
    beside = sorted(name for name in loading.unexpected_keys if _is_in_a_layer(name, model))
    differing = [
        (name, here, expected)
        for name, here, expected in sorted(loading.mismatched_keys)
        if is_of_base(name, model) or task is not Task.SEQUENCE_CLASSIFICATION
    ]
    base_names = [name for name, _ in model.named_parameters() if is_of_base(name, model)]
    if odd:
        types = ", ".join(
            sorted({str(tensor.dtype).removeprefix("torch.") for tensor in odd.values()})
        )
        yield f"weights are stored as {types} ({_listed(odd)}); {DEQUANTISE}"
    elif beside or loading.conversion_errors:
        names = beside or list(loading.conversion_errors)
        yield (
            f"its layers have stored tensors that a {model.config.model_type} of this "
            f"configuration lacks ({_listed(names)}), such as scales of quantised weights or parts "
            f"of an adapter; {DEQUANTISE}, or a configuration that has them"
        )
    elif differing:
        name, here, expected = differing[0]
        yield (
            f"{name} is stored with shape {list(here)}, and its configuration says "
            f"{list(expected)}; expected the config.json that was saved with the weights"
        )
    elif base_names and loading.missing_keys.issuperset(base_names):
        yield (
            f"no stored tensor has the name of a weight of {model.config.model_type} (stored are "
            f"{_listed(stored)}); expected names such as {base_names[0]}, as save_pretrained "
            "writes them"
        )
    elif (renamed := _renamed_head(task, model, loading, stored)) is not None:
        head, name = renamed
        yield (
            f"its head {head} is not stored, and {name} of the same shape is, which a "
            f"{model.config.model_type} has not; expected the head as {head}: a new one would be "
            "trained"
        )


def _renamed_head(
    task: Task, model: PreTrainedModel, loading: Any, stored: Mapping[str, torch.Tensor]
) -> tuple[str, str] | None:
    """A language model's head without a stored value, and the stored tensor [...] that may be
    it.
    """
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
    for head in sorted(loading.missing_keys):
        if task is Task.SEQUENCE_CLASSIFICATION or is_of_base(head, model):
            continue
        for name in sorted(loading.unexpected_keys):
            if head in shapes and stored[name].shape == shapes[head]:
                return head, name
    return None


def _loaded(model: PreTrainedModel, stored: Mapping[str, torch.Tensor]) -> Any:
    """What transformers finds when it loads ``stored`` [...] by names, shapes and types.

    Nothing has a value.
    """
    translations: Any = get_model_conversion_mapping(model)
    config = LoadStateDictConfig(
        device_map={"": "meta"}, dtype=torch.float32, weight_mapping=translations
    )
    had_bar = is_progress_bar_enabled()
    disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        loading, _ = convert_and_load_state_dict_in_model(
            model=model, state_dict=dict(stored), load_config=config
        )
    finally:
        if had_bar:
            enable_progress_bar()  # type: ignore[no-untyped-call]
    model._adjust_missing_and_unexpected_keys(loading)
    return loading


def _is_in_a_layer(name: str, model: PreTrainedModel) -> bool:
    """Whether a module with parameters of its own has this path, or is around it."""
    modules = dict(model.named_modules())
    for path in (name, f"{model.base_model_prefix}.{name}"):
        while path := path.rpartition(".")[0]:
            if path in modules:
                if any(True for _ in modules[path].parameters(recurse=False)):
                    return True
                break
    return False


def _listed(names: Any) -> str:
    shown = list(names)
    more = f" and {len(shown) - SHOWN} more" if len(shown) > SHOWN else ""
    return ", ".join(shown[:SHOWN]) + more
