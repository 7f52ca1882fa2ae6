"""Makes the run's model configuration: from a path or the suite, fitted to the tokenizer, the labels and the length."""

from collections.abc import Mapping, Sequence
from typing import Any

from transformers import AutoConfig, PreTrainedConfig, PreTrainedTokenizerBase

from traindyno.core.suite.choices import Task
from traindyno.core.suite.settings import Settings
from traindyno.core.suite.workload import Workload
from training.errors import WorkloadError, explained
from training.models.config_numbers import NOT_BUILT, most_positions, needed_positions, text_of


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
        for name, token in _special_token_ids(tokenizer).items():
            setattr(config, name, token)
    if workload.task is Task.SEQUENCE_CLASSIFICATION:
        config.num_labels = workload.label_count or 2
    config.use_cache = False
    _check_length(config, workload.sequence_length)
    if settings.dropout is not None:
        _set_dropout(config, settings.dropout)
    return config


def name_labels(config: PreTrainedConfig, names: Sequence[str]) -> None:
    """Make the saved model answer with the labels of the data. Classes without a name keep transformers' own."""
    named: dict[int, str] = {number: f"LABEL_{number}" for number in range(config.num_labels or 0)}
    named |= dict(enumerate(names))
    config.id2label, config.label2id = named, {name: number for number, name in named.items()}


def _config_from_mapping(asked: Mapping[str, Any], tokenizer: PreTrainedTokenizerBase | None) -> PreTrainedConfig:
    values = dict(asked)
    kind = values.pop("model_type", None)
    if kind is None:
        raise WorkloadError("workload.model.config has no model_type; expected one such as gpt2, gptj, bert or albert")
    if tokenizer is not None:
        values.setdefault("vocab_size", len(tokenizer))
        values |= _special_token_ids(tokenizer)
    try:
        config: PreTrainedConfig = AutoConfig.for_model(kind, **values)
    except NOT_BUILT as error:
        raise WorkloadError(f"workload.model.config: {error}") from error
    return config


def end_token(tokenizer: PreTrainedTokenizerBase) -> int | None:
    """The token that ends a text; [SEP] where a tokenizer has no end token."""
    end: int | None = tokenizer.eos_token_id
    return tokenizer.sep_token_id if end is None else end


def _special_token_ids(tokenizer: PreTrainedTokenizerBase) -> dict[str, int | None]:
    """BART and others classify by the state of the end token."""
    return {
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": end_token(tokenizer),
    }


def _check_vocabulary(config: PreTrainedConfig, tokenizer: PreTrainedTokenizerBase) -> None:
    if len(tokenizer) > config.vocab_size:
        raise WorkloadError(
            f"the tokenizer has {len(tokenizer)} tokens and the model's vocabulary {config.vocab_size}; "
            "expected a model with at least as many"
        )


def _check_length(config: PreTrainedConfig, sequence_length: int | None) -> None:
    positions = most_positions(config)
    if sequence_length is None or positions is None:
        return
    needed = needed_positions(config, sequence_length)
    if needed > positions:
        raise WorkloadError(
            f"workload.sequence_length is {sequence_length}, for which {config.model_type} needs {needed} positions, "
            f"but the model has {positions}; expected a shorter sequence or a larger max_position_embeddings"
        )


def _set_dropout(config: PreTrainedConfig, rate: float) -> None:
    names = [name for name in config.to_dict() if name.endswith(("_pdrop", "dropout", "dropout_prob"))]
    for name in names:
        current = getattr(config, name, None)
        # ESM's token_dropout is not a rate: it says whether masked tokens' embeddings are zero.
        if isinstance(current, float | int) and not isinstance(current, bool):
            setattr(config, name, rate)
