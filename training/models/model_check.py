"""Checks by its configuration if transformers can build a suite's model as the suite uses it.

The task, the length, and the divisions of its strategies count.

The command line checks this before a suite starts, if transformers is installed; the job that makes
tokens checks it before any accelerator starts, and each run at its start.
"""

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from difflib import get_close_matches
from typing import Any

from transformers import CONFIG_MAPPING, AutoConfig, PreTrainedConfig
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES,
)

from traindyno.core.errors import Problem
from traindyno.core.run.processes import TensorDivision
from traindyno.core.run.settings import Adapter
from traindyno.core.run.workload import Workload
from traindyno.core.suite.choices import Task
from training.errors import NeedsForeignCode, WorkloadError
from training.models.config_numbers import NOT_BUILT, count_in, positions_problem, text_of
from training.models.model_config import (
    AUTO_CLASSES,
    load_config,
    model_config,
    read_tokenizer,
    set_label_count,
)

CONFIG = "workload.model.config"
CLASSES_OF_TASK: Mapping[Task, Mapping[str, Any]] = {
    Task.CAUSAL_LM: MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    Task.MASKED_LM: MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    Task.SEQUENCE_CLASSIFICATION: MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES,
}
FAMILIAR = {
    Task.CAUSAL_LM: "gpt2, llama or qwen3",
    Task.MASKED_LM: "bert, roberta or albert",
    Task.SEQUENCE_CLASSIFICATION: "bert, roberta or albert",
}
# Weights under these keys of a configuration mean more than their numbers.
QUANTISED = ("quantization_config", "compression_config")
SINGLE_LABEL = "single_label_classification"
# A model with one of these sets the size of its heads apart from its hidden size.
HEAD_SIZES = ("head_dim", "d_head", "d_kv", "attention_head_size", "kv_channels")
# Without one of each, a model has no weights to train, or can't be built.
COUNTS = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
)


def check_model(
    workload: Workload,
    divisions: Iterable[TensorDivision],
    stage_counts: Iterable[int] = (),
    adapters: Iterable[Adapter] = (),
    *,
    model_path: str | None,
    weights_path: str | None = None,
    tokenizer_path: str | None = None,
    runs_code: bool = False,
) -> Iterator[Problem]:
    """Yields the problems of the suite's model.

    Args:
        workload: The suite's workload.
        divisions: The divisions by tensor parallelism of all cells.
        stage_counts: The numbers of pipeline stages of all cells.
        adapters: The adapters of all cells.
        model_path: What transformers can load; None for a model from a mapping.
        weights_path: Where the weights are read; None to leave them unchecked.
        tokenizer_path: Where the tokenizer is read; None to leave it unchecked.
        runs_code: Whether this is a job of a suite that allows the model's own code.
    """
    if workload.model is None or (model_path is None and workload.model.config is None):
        return
    if model_path is None:
        problems = list(_check_mapping(workload.model.config or {}))
        if problems:
            yield from problems
            return
        config: PreTrainedConfig = AutoConfig.for_model(**(workload.model.config or {}))
    else:
        try:
            config = load_config(workload.model, model_path, runs_code=runs_code)
        except WorkloadError as error:
            if not (
                workload.trust_remote_code and isinstance(error, NeedsForeignCode)
            ):  # its jobs check it
                yield Problem(path="workload.model", message=" ".join(str(error).split()))
            return
    use_any_attention(config)
    place = CONFIG if model_path is None else "workload.model"
    problems = list(_check_config(workload, config, place, runs_code=runs_code))
    if problems:
        yield from problems
        return
    yield from _check_divisions(
        workload.task, config, list(divisions), max(stage_counts, default=1)
    )
    yield from _check_adapters(workload, config, list(adapters))
    if weights_path is not None:
        yield from _check_weights(workload, config, weights_path, workload.model.revision)
    if tokenizer_path is not None:
        try:
            tokenizer = read_tokenizer(workload, tokenizer_path, runs_code=runs_code)
            model_config(workload, tokenizer, model_path=model_path)
        except WorkloadError as error:
            yield Problem(path="workload.tokenizer", message=" ".join(str(error).split()))


def _check_config(
    workload: Workload, config: PreTrainedConfig, place: str, *, runs_code: bool
) -> Iterator[Problem]:
    """Yields what the configuration alone shows."""
    if not (runs_code and _has_own_class(config, workload.task)):
        yield from _check_task(config, workload.task)
    text = text_of(config)
    yield from _check_counts(text, place) or _check_heads(text, place)
    message = positions_problem(config, workload.sequence_length)
    if message:
        yield Problem(path="workload.sequence_length", message=message)
    yield from _check_values_of_weights(config)
    yield from _check_loss(config, workload.task)


def _check_weights(
    workload: Workload, config: PreTrainedConfig, weights_path: str, revision: str | None
) -> Iterator[Problem]:
    from training.models.saved_check import check_saved  # noqa: PLC0415  (imports PyTorch: seconds)

    if workload.task is Task.SEQUENCE_CLASSIFICATION:
        set_label_count(config, workload)
    for message in check_saved(workload.task, config, weights_path, revision):
        yield Problem(path="workload.model", message=message)


def use_any_attention(config: PreTrainedConfig) -> None:
    """A stored configuration may name an attention whose package only a run's image has."""
    config._attn_implementation = None


def refuse(problems: Iterable[Problem]) -> None:
    """Raises WorkloadError with every problem, if there are any, as jobs do."""
    message = "; ".join(map(str, problems))
    if message:
        raise WorkloadError(message)


def refuse_forward(config: PreTrainedConfig, workload: Workload) -> None:
    """Raises WorkloadError if transformers refuses two rows, without values, for the tokenizer or
    the length.
    """
    import torch  # noqa: PLC0415  (seconds)

    from training.models.model import empty_model  # noqa: PLC0415

    rows = torch.ones(2, workload.sequence_length or 1, dtype=torch.int64, device="meta")
    tried = deepcopy(config)
    use_any_attention(tried)
    try:
        with torch.no_grad(), suppress(TypeError, RuntimeError):
            empty_model(workload.task, tried).train()(input_ids=rows, attention_mask=rows)
    except ValueError as error:
        asked = f"{workload.sequence_length} tokens of this tokenizer"
        raise WorkloadError(
            f"a {config.model_type} of this configuration can't take {asked}: {error}"
        ) from error


def _check_mapping(asked: Mapping[str, Any]) -> Iterator[Problem]:
    """Checks the model type, the names of the keys, and whether the values make a configuration."""
    values = dict(asked)
    kind = values.pop("model_type", None)
    if kind not in CONFIG_MAPPING:
        nearest = _nearest(str(kind), CONFIG_MAPPING)
        message = f"{kind} is no model type of transformers; expected one such as {nearest}"
        yield Problem(path=f"{CONFIG}.model_type", message=message)
        return
    plain: PreTrainedConfig = CONFIG_MAPPING[kind]()
    parameters = {
        *inspect.signature(type(plain)).parameters,
        *inspect.signature(PreTrainedConfig).parameters,
    }
    accepted = {*plain.to_dict(), *plain.attribute_map, *parameters} - {"kwargs"}
    unknown = {name: value for name, value in values.items() if name not in accepted}
    with suppress(
        *NOT_BUILT
    ):  # transformers reads names of older files, such as torch_dtype, and keeps none of them
        kept = vars(CONFIG_MAPPING[kind](**unknown))
        unknown = {name: value for name, value in unknown.items() if name in kept}
    for name in unknown:
        message = (
            f"{kind}'s configuration has no key {name}; expected one such as "
            f"{_nearest(name, accepted)}"
        )
        yield Problem(path=f"{CONFIG}.{name}", message=message)
    if unknown:
        return
    try:
        AutoConfig.for_model(kind, **values)
    except NOT_BUILT as error:
        reason = " ".join(str(error).split())
        yield Problem(path=CONFIG, message=f"the values make no configuration of {kind}: {reason}")


def _nearest(name: str, accepted: Iterable[str]) -> str:
    listed = sorted(accepted)
    return ", ".join(get_close_matches(name, listed, n=3, cutoff=0.5) or listed[:3])


def _check_task(config: PreTrainedConfig, task: Task) -> Iterator[Problem]:
    kind = config.model_type
    classes = CLASSES_OF_TASK[task]
    if kind not in classes:
        others = [other.value for other, names in CLASSES_OF_TASK.items() if kind in names]
        hint = f" (it can learn {', '.join(others)})" if others else ""
        message = (
            f"model type {kind} has no {task} head{hint}; expected one such as {FAMILIAR[task]}"
        )
        yield Problem(path="workload.model", message=message)


def _has_own_class(config: PreTrainedConfig, task: Task) -> bool:
    return AUTO_CLASSES[task].__name__ in (getattr(config, "auto_map", None) or {})


def _check_values_of_weights(config: PreTrainedConfig) -> Iterator[Problem]:
    for part in (config, text_of(config)):
        for name in QUANTISED:
            asked = getattr(part, name, None)
            if asked:
                values = asked if isinstance(asked, dict) else vars(asked)
                method = values.get("quant_method") or values.get("format") or "quantised weights"
                message = (
                    f"its configuration has a {name} ({method}); expected plain weights: "
                    "dequantise the model"
                )
                yield Problem(path="workload.model", message=f"{message} first, then save it")
                return


def _check_loss(config: PreTrainedConfig, task: Task) -> Iterator[Problem]:
    """What transformers would add to the task's cross entropy, or train in its place."""
    kind = config.problem_type
    if task is Task.SEQUENCE_CLASSIFICATION and kind not in (None, SINGLE_LABEL):
        message = (
            f"its configuration has problem_type {kind}, and the task learns one class of each "
            f"text by cross entropy; expected {SINGLE_LABEL} or none, or a script of your own"
        )
        yield Problem(path="workload.model", message=message)
    factor = getattr(text_of(config), "z_loss_coefficient", None)
    if factor and task is Task.CAUSAL_LM:
        message = (
            f"its configuration has z_loss_coefficient {factor}, which the task's loss has not; "
            "expected 0"
        )
        yield Problem(path="workload.model", message=message)


def _check_counts(config: PreTrainedConfig, place: str) -> list[Problem]:
    """Checks counts under the names that the model type gives them, such as n_layer."""
    counts = {config.attribute_map.get(name, name): count_in(config, name) for name in COUNTS}
    return [
        Problem(path=place, message=f"got {name} {count}, expected at least 1")
        for name, count in counts.items()
        if count is not None and count < 1
    ]


def _check_heads(config: PreTrainedConfig, place: str) -> list[Problem]:
    size = count_in(config, "hidden_size")
    heads = count_in(config, "num_attention_heads")
    if not (size and heads and size % heads) or any(count_in(config, name) for name in HEAD_SIZES):
        return []
    message = f"the hidden size is {size}; expected one that {heads} attention heads divide"
    return [Problem(path=place, message=message)]


def _check_divisions(
    task: Task, config: PreTrainedConfig, divisions: Sequence[TensorDivision], most_stages: int
) -> Iterator[Problem]:
    """Checking the largest stage count suffices: fewer stages are always possible."""
    if not divisions and most_stages == 1:
        return
    from training.models.division_check import check_cut, check_division  # noqa: PLC0415  (imports PyTorch: seconds)

    problems = [check_division(task, config, division) for division in divisions]
    if most_stages > 1:
        problems.append(check_cut(task, config, most_stages))
    yield from dict.fromkeys(filter(None, problems))


def _check_adapters(
    workload: Workload, config: PreTrainedConfig, adapters: Sequence[Adapter]
) -> Iterator[Problem]:
    if not adapters:
        return
    from training.models.adapter_check import check_adapter  # noqa: PLC0415  (imports PyTorch: seconds)

    if workload.task is Task.SEQUENCE_CLASSIFICATION:
        set_label_count(config, workload)
    for adapter in adapters:
        yield from check_adapter(workload.task, config, adapter)
