"""The run's model, which one of transformers' auto classes for the task builds.

Which tokens a token attends to is transformers' own decision: sliding windows, chunks, padding.
What changes here is how it finds that no mask is needed. By itself, it reads the positions of every
batch, which waits for the device, and makes a mask whenever the model is compiled. It then can't
use the fastest kernels.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AttentionMaskInterface,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    masking_utils,
)
from transformers.masking_utils import sdpa_mask

from traindyno.callbacks.failure import OUT_OF_MEMORY, classify
from traindyno.core.run.settings import Settings
from traindyno.core.run.workload import Workload
from traindyno.core.suite.choices import Task
from training.errors import WorkloadError, explained
from training.models.adapter import lora_config, with_adapter
from training.models.adapter_files import read_adapter
from training.models.base_weights import convert_base
from training.models.blueprint import (
    Blueprint,
    IsWanted,
    NamedValues,
    enable_checkpointing,
    seeded_values,
    without_values,
)
from training.models.config_numbers import NOT_BUILT
from training.models.model_config import AUTO_CLASSES, model_config, name_labels
from training.models.number_format import LOWER_TYPES
from training.models.saved_values import find_saved, saved_values

_separate_documents = masking_utils.find_packed_sequence_indices


def set_document_masking(is_on: bool) -> None:
    """Sets whether tokens attend within their document only.

    A document begins where positions start again.
    """
    find: Any = _separate_documents if is_on else lambda position_ids: None
    masking_utils.find_packed_sequence_indices = find


def _mask_if_needed(
    *,
    q_length: int,
    kv_length: int,
    attention_mask: torch.Tensor | None = None,
    local_size: int | None = None,
    allow_is_causal_skip: bool = True,
    allow_is_bidirectional_skip: bool = False,
    **others: Any,
) -> torch.Tensor | None:
    """Takes ``attention_mask`` [B, L].

    Returns [B, 1, L, L], or None if the whole row is attended to, or all before.
    """
    can_skip = allow_is_causal_skip or allow_is_bidirectional_skip
    is_whole = (
        attention_mask is None
        and q_length == kv_length
        and (local_size is None or kv_length < local_size)
    )
    if can_skip and is_whole:
        return None
    made: torch.Tensor | None = sdpa_mask(
        q_length=q_length,
        kv_length=kv_length,
        attention_mask=attention_mask,
        local_size=local_size,
        allow_is_causal_skip=allow_is_causal_skip,
        allow_is_bidirectional_skip=allow_is_bidirectional_skip,
        **others,
    )
    return made


AttentionMaskInterface.register("sdpa", _mask_if_needed)
set_document_masking(False)


def build_model(
    workload: Workload,
    settings: Settings,
    tokenizer: PreTrainedTokenizerBase | None,
    *,
    model_path: str | None,
    label_names: Sequence[str] = (),
    adapter_path: Path | None = None,
) -> Blueprint:
    """Builds the model in single precision, with the adapter that the settings ask for.

    Its values are the same on every rank, because the seed is. ``adapter_path`` is the folder of
    the adapter that training goes on from.
    """
    set_document_masking(settings.document_masking)
    config = model_config(workload, tokenizer, model_path=model_path, dropout=settings.dropout)
    if label_names:
        name_labels(config, label_names)
    torch.manual_seed(settings.seed)
    model = skeleton(workload.task, config)
    if settings.activation_checkpointing:
        enable_checkpointing(model)
    values = _values(workload, config, settings.seed, model_path)
    for module in model.modules():
        # Remove transformers' check for padding in every batch, which waits for the device: our
        # batches have a mask.
        if isinstance(module, PreTrainedModel):
            module.warn_if_padding_and_no_attention_mask = _no_check  # type: ignore[method-assign]
    blueprint = Blueprint(model=model, config=config, values=values)
    if settings.adapter is None:
        return blueprint
    saved = None
    if adapter_path is None:
        adapter = lora_config(model, settings.adapter, workload.task)
    else:
        adapter, saved = read_adapter(adapter_path, model, settings.adapter, workload.task)
    convert_base(model, settings.base_weights, LOWER_TYPES[settings.precision])
    return with_adapter(blueprint, adapter, settings.seed, saved)


def _values(
    workload: Workload, config: PreTrainedConfig, seed: int, model_path: str | None
) -> Callable[[IsWanted], NamedValues]:
    # A separate model: the strategy rewrites the run's.
    empty = skeleton(workload.task, config)
    if model_path is None:
        return partial(seeded_values, empty, seed)
    assert workload.model is not None
    with explained(f"the model {model_path}"):
        saved = find_saved(
            empty, model_path, workload.model.revision, renews_head=_renews_head(workload)
        )
    if saved is not None:
        return partial(saved_values, empty, saved, seed)
    return partial(_translated_values, workload, config, seed, model_path)


def _translated_values(
    workload: Workload, config: PreTrainedConfig, seed: int, model_path: str, is_wanted: IsWanted
) -> NamedValues:
    """Yields values that transformers reads; it holds the whole model in memory for this."""
    assert workload.model is not None
    torch.manual_seed(seed)
    with explained(f"the model {model_path}"):
        model = AUTO_CLASSES[workload.task].from_pretrained(
            model_path,
            config=config,
            revision=workload.model.revision,
            dtype=torch.float32,
            ignore_mismatched_sizes=_renews_head(workload),
            trust_remote_code=False,
        )
    yield from ((name, tensor) for name, tensor in model.state_dict().items() if is_wanted(name))


def _renews_head(workload: Workload) -> bool:
    """A head for another number of labels than the saved one is new.

    Other shapes have been refused before.
    """
    return workload.task is Task.SEQUENCE_CLASSIFICATION


def skeleton(task: Task, config: PreTrainedConfig) -> PreTrainedModel:
    """A model whose parameters are on the meta device; its buffers have their values."""
    with without_values():
        model = build_from_config(task, config)
    _restore_buffers(model, task, config)
    _fill_buffers(model)
    model.tie_weights()
    return model


def _fill_buffers(model: PreTrainedModel) -> None:
    """transformers gives some buffers their values where it initialises parameters.

    Those are on the meta device, where an initialisation changes nothing, but takes as long as one
    of a small model.
    """
    parameters = list(model.parameters())
    for parameter in parameters:
        parameter._is_hf_initialized = True  # type: ignore[attr-defined]
    model.initialize_weights()  # type: ignore[no-untyped-call]
    for parameter in parameters:
        del parameter._is_hf_initialized  # type: ignore[attr-defined]


def _restore_buffers(model: PreTrainedModel, task: Task, config: PreTrainedConfig) -> None:
    """Give values to buffers that are made of a parameter, such as I-BERT's.

    It builds the whole model for them.
    """
    lost = [name for name, buffer in model.named_buffers() if buffer.is_meta]
    if lost:
        whole = build_from_config(task, config)
        for name in lost:
            path, _, own_name = name.rpartition(".")
            model.get_submodule(path)._buffers[own_name] = whole.get_buffer(name)


def build_from_config(task: Task, config: PreTrainedConfig) -> PreTrainedModel:
    try:
        model: PreTrainedModel = AUTO_CLASSES[task].from_config(
            config, dtype=torch.float32, trust_remote_code=False
        )
    except (*NOT_BUILT, AssertionError, ImportError) as error:
        if classify(error) == OUT_OF_MEMORY:
            raise
        raise WorkloadError(
            f"transformers can't build a {config.model_type} model for {task} from its "
            f"configuration: {error}"
        ) from error
    return model


def empty_model(task: Task, config: PreTrainedConfig) -> PreTrainedModel:
    """A model on the meta device, with shapes and without values. Weights are not tied."""
    with without_values():
        return build_from_config(task, config)


def _no_check(_input_ids: torch.Tensor, _attention_mask: torch.Tensor | None) -> None:
    """Takes ``_input_ids`` [B, L] and ``_attention_mask`` [B, L]."""
