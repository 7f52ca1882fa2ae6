"""Makes the run's model configuration, from a path or the suite.

It is fitted to the tokenizer, the labels and the length.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transformers import (
    CONFIG_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedTokenizerBase,
)
from transformers.dynamic_module_utils import get_class_from_dynamic_module

from traindyno.core.run.saved_model import model_problem
from traindyno.core.run.workload import Model, Workload
from traindyno.core.suite.choices import Task
from training.errors import WorkloadError, explained
from training.models.config_numbers import NOT_BUILT, count_in, positions_problem, text_of

AUTO_CLASSES: Mapping[Task, Any] = {
    Task.CAUSAL_LM: AutoModelForCausalLM,
    Task.MASKED_LM: AutoModelForMaskedLM,
    Task.SEQUENCE_CLASSIFICATION: AutoModelForSequenceClassification,
}
# Their classifiers read the state of the end token, and fail without one.
CLASSIFIED_BY_THE_END_TOKEN = {
    "bart",
    "bigbird_pegasus",
    "mbart",
    "mt5",
    "mvp",
    "plbart",
    "t5",
    "umt5",
}


def load_config(model: Model, model_path: str, *, runs_code: bool) -> PreTrainedConfig:
    """Raises WorkloadError if transformers can't load the configuration, or only with code that is
    stored beside it.

    With ``runs_code``, for jobs of a suite that allows it, this code is run, and its classes are
    transformers' own from then on: no later call needs to allow it again.
    """
    folder = Path(model_path)
    if folder.is_dir():
        problem = model_problem(model.path or model_path, [file.name for file in folder.iterdir()])
        if problem is not None:
            raise WorkloadError(problem)
    with explained(f"the model {model.path or model_path}", *NOT_BUILT):
        config: PreTrainedConfig = AutoConfig.from_pretrained(
            model_path, revision=model.revision, trust_remote_code=runs_code
        )
        if runs_code:
            _register_code(config, model_path, model.revision)
    return config


def _register_code(config: PreTrainedConfig, model_path: str, revision: str | None) -> None:
    kind = type(config)
    if kind.model_type not in CONFIG_MAPPING:
        AutoConfig.register(kind.model_type, kind)
    for auto_class in AUTO_CLASSES.values():
        reference = (getattr(config, "auto_map", None) or {}).get(auto_class.__name__)
        if reference:
            model_class = get_class_from_dynamic_module(reference, model_path, revision=revision)
            auto_class.register(kind, model_class, exist_ok=True)


def read_tokenizer(workload: Workload, path: str, *, runs_code: bool) -> PreTrainedTokenizerBase:
    named = workload.tokenizer or workload.model
    revision = None if named is None else named.revision
    with explained(f"the tokenizer {path}"):
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            path, revision=revision, trust_remote_code=runs_code
        )
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def model_config(
    workload: Workload,
    tokenizer: PreTrainedTokenizerBase | None,
    *,
    model_path: str | None,
    dropout: float | None = None,
    is_trained: bool = True,
) -> PreTrainedConfig:
    """The configuration of a job's model; if it is not ``is_trained``, the one to save, without
    what is set for a training.

    Raises WorkloadError if the tokenizer does not fit it.
    """
    assert workload.model is not None
    if model_path is not None:
        config = load_config(workload.model, model_path, runs_code=workload.trust_remote_code)
    else:
        config = _config_from_mapping(workload.model.config or {}, tokenizer)
    if workload.task is Task.SEQUENCE_CLASSIFICATION:
        set_label_count(config, workload)
    parts = list({id(part): part for part in (config, text_of(config))}.values())
    # A classifier reads the state of the token that it was trained with.
    keeps_own = (
        not is_trained
        and model_path is not None
        and workload.task is not Task.SEQUENCE_CLASSIFICATION
        and has_own_ends(config, workload, tokenizer)
    )
    if tokenizer is not None:
        _check_vocabulary(config, tokenizer)
        if workload.task is not Task.CAUSAL_LM and tokenizer.pad_token_id is None:
            raise WorkloadError(
                "the tokenizer has neither a padding nor an end token; expected one, to pad rows "
                "with"
            )
        if (
            workload.task is Task.SEQUENCE_CLASSIFICATION
            and config.model_type in CLASSIFIED_BY_THE_END_TOKEN
        ):
            _check_end_token(config, tokenizer)
        for name, token in _special_token_ids(tokenizer).items():
            for part in parts:
                is_own = keeps_own and getattr(part, name, None) is not None
                if not is_own and (part is parts[-1] or hasattr(part, name)):
                    setattr(part, name, token)
    for part in parts if is_trained else ():
        part.use_cache = False
        if dropout is not None:
            _set_dropout(part, dropout)
    problem = positions_problem(config, workload.sequence_length)
    if problem is not None:
        raise WorkloadError(f"workload.sequence_length: {problem}")
    return config


def has_own_ends(
    config: PreTrainedConfig, workload: Workload, tokenizer: PreTrainedTokenizerBase | None
) -> bool:
    """Whether the stored configuration and the tokenizer have the same end token.

    Another tokenizer than the model's own may have another one.
    """
    if workload.tokenizer is None or tokenizer is None:
        return True
    stored = text_of(config).eos_token_id
    return end_token(tokenizer) in (stored if isinstance(stored, list) else [stored])


def set_label_count(config: PreTrainedConfig, workload: Workload) -> None:
    """Names of labels stay if their number does."""
    for part in (config, text_of(config)):
        part.num_labels = workload.label_count or 2


def labels_of_head(config: PreTrainedConfig) -> Sequence[str]:
    """The labels of a saved classifier by their numbers; none if it has another number of labels,
    or only numbers.
    """
    is_saved = any(
        name.endswith("ForSequenceClassification") for name in config.architectures or ()
    )
    named = {int(number): name for number, name in (config.id2label or {}).items()}
    names = [named[number] for number in sorted(named)]
    return names if is_saved and not all(name.startswith("LABEL_") for name in names) else []


def name_labels(config: PreTrainedConfig, names: Sequence[str]) -> None:
    """Make the saved model answer with the labels of the data.

    Classes without a name keep transformers' own.
    """
    named: dict[int, str] = {number: f"LABEL_{number}" for number in range(config.num_labels or 0)}
    named |= dict(enumerate(names))
    for part in (config, text_of(config)):
        part.id2label = named
        part.label2id = {name: number for number, name in named.items()}


def _config_from_mapping(
    asked: Mapping[str, Any], tokenizer: PreTrainedTokenizerBase | None
) -> PreTrainedConfig:
    values = dict(asked)
    kind = values.pop("model_type")  # the suite's check has asked for it
    try:
        if tokenizer is not None:
            plain = CONFIG_MAPPING[kind]()
            text = text_of(plain)
            name = next(
                (
                    sub_config
                    for sub_config in plain.sub_configs
                    if getattr(plain, sub_config, None) is text
                ),
                None,
            )
            of_text = {"vocab_size": len(tokenizer), **(values.get(name) or {} if name else values)}
            of_text |= _special_token_ids(tokenizer)
            values = {**values, name: of_text} if name else of_text
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
    if len(tokenizer) <= len(tokenizer.all_special_ids):
        raise WorkloadError(
            "the tokenizer has special tokens only: transformers makes such a one for a folder "
            "without the files of a tokenizer; expected these files, such as tokenizer.json and "
            "tokenizer_config.json, beside the model"
        )
    vocabulary = count_in(text_of(config), "vocab_size")
    if vocabulary is not None and len(tokenizer) > vocabulary:
        raise WorkloadError(
            f"the tokenizer has {len(tokenizer)} tokens and the model's vocabulary {vocabulary}; "
            "expected a model with at least as many"
        )


def _check_end_token(config: PreTrainedConfig, tokenizer: PreTrainedTokenizerBase) -> None:
    tokens: list[int] = tokenizer("a")["input_ids"]
    if end_token(tokenizer) not in tokens:
        raise WorkloadError(
            f"a {config.model_type} classifies a text by its end token, and the tokenizer adds "
            f"none ({tokenizer.eos_token!r}) to a text; expected a tokenizer that does, such as "
            "the model's own"
        )


def _set_dropout(config: PreTrainedConfig, rate: float) -> None:
    names = [
        name for name in config.to_dict() if name.endswith(("_pdrop", "dropout", "dropout_prob"))
    ]
    for name in names:
        current = getattr(config, name, None)
        # ESM's token_dropout is not a rate: it says whether masked tokens' embeddings are zero.
        if isinstance(current, float | int) and not isinstance(current, bool):
            setattr(config, name, rate)
