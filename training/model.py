"""The run's model: one of transformers' auto classes for the task, with weights from a path or random ones."""

from collections.abc import Mapping
from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from traindyno.core.suite.suite import Settings, Task, Workload
from training.activations import enable_checkpointing
from training.attention import attend_without_mask
from training.errors import WorkloadError
from training.pretrained import explained

AUTO_CLASSES: Mapping[Task, Any] = {
    Task.CAUSAL_LM: AutoModelForCausalLM,
    Task.MASKED_LM: AutoModelForMaskedLM,
    Task.SEQUENCE_CLASSIFICATION: AutoModelForSequenceClassification,
}
SPECIAL_TOKEN_IDS = ("pad_token_id", "bos_token_id", "eos_token_id")


def build_model(
    workload: Workload,
    settings: Settings,
    tokenizer: PreTrainedTokenizerBase | None,
    *,
    model_path: str | None,
    is_padded: bool = True,
) -> PreTrainedModel:
    """On the CPU, in single precision; the same on every rank, because the seed is."""
    assert workload.model is not None
    config = model_config(workload, settings, tokenizer, model_path=model_path)
    torch.manual_seed(settings.seed)
    if model_path is None:
        model: PreTrainedModel = AUTO_CLASSES[workload.task].from_config(config)
    else:
        with explained(f"the model {model_path}"):
            model = AUTO_CLASSES[workload.task].from_pretrained(
                model_path, config=config, revision=workload.model.revision, dtype=torch.float32
            )
    if settings.activation_checkpointing:
        enable_checkpointing(model)
    if not is_padded:
        attend_without_mask(model)
    return _trusting_its_input(model)


def empty_model(task: Task, config: PreTrainedConfig) -> PreTrainedModel:
    """Shapes without values, on the meta device."""
    with torch.device("meta"):
        model: PreTrainedModel = AUTO_CLASSES[task].from_config(config)
    return model


def _trusting_its_input(model: PreTrainedModel) -> PreTrainedModel:
    """Without transformers' look for padding in every batch, which waits for the device: ours come with a mask."""
    for module in model.modules():
        if isinstance(module, PreTrainedModel):
            module.warn_if_padding_and_no_attention_mask = _no_check  # type: ignore[method-assign]
    return model


def _no_check(_input_ids: torch.Tensor, _attention_mask: torch.Tensor | None) -> None:
    pass


def model_config(
    workload: Workload, settings: Settings, tokenizer: PreTrainedTokenizerBase | None, *, model_path: str | None
) -> PreTrainedConfig:
    assert workload.model is not None
    if model_path is not None:
        with explained(f"the model {workload.model.path or model_path}"):
            config: PreTrainedConfig = AutoConfig.from_pretrained(model_path, revision=workload.model.revision)
    else:
        config = _config_from_mapping(workload.model.config or {}, tokenizer)
    if tokenizer is not None:
        _check_vocabulary(config, tokenizer)
        for name in SPECIAL_TOKEN_IDS:
            setattr(config, name, getattr(tokenizer, name))
    if workload.task is Task.SEQUENCE_CLASSIFICATION:
        config.num_labels = workload.label_count or 2
    config.use_cache = False
    _check_length(config, workload.sequence_length)
    if settings.dropout is not None:
        _set_dropout(config, settings.dropout)
    return config


def _config_from_mapping(asked: Mapping[str, Any], tokenizer: PreTrainedTokenizerBase | None) -> PreTrainedConfig:
    values = dict(asked)
    kind = values.pop("model_type", None)
    if kind is None:
        raise WorkloadError("workload.model.config has no model_type; expected one such as gpt2, gptj, bert or albert")
    if tokenizer is not None:
        values.setdefault("vocab_size", len(tokenizer))
        values |= {name: getattr(tokenizer, name) for name in SPECIAL_TOKEN_IDS}
    try:
        config: PreTrainedConfig = AutoConfig.for_model(kind, **values)
    except ValueError as error:
        raise WorkloadError(f"workload.model.config: {error}") from error
    return config


def _check_vocabulary(config: PreTrainedConfig, tokenizer: PreTrainedTokenizerBase) -> None:
    if len(tokenizer) > config.vocab_size:
        raise WorkloadError(
            f"the tokenizer has {len(tokenizer)} tokens and the model's vocabulary {config.vocab_size}; "
            "expected a model with at least as many"
        )


def _check_length(config: PreTrainedConfig, sequence_length: int | None) -> None:
    longest = getattr(config, "max_position_embeddings", None)
    if sequence_length is not None and longest is not None and sequence_length > longest:
        raise WorkloadError(
            f"workload.sequence_length is {sequence_length}, but the model has positions for {longest} tokens"
        )


def _set_dropout(config: PreTrainedConfig, rate: float) -> None:
    names = [name for name in config.to_dict() if name.endswith(("_pdrop", "dropout", "dropout_prob"))]
    for name in names:
        if isinstance(getattr(config, name, None), float | int):
            setattr(config, name, rate)
