"""The fields that each task's workload needs, and the fields that it does not use."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from traindyno.core.documents.plain import plain_values
from traindyno.core.documents.problems import shown
from traindyno.core.errors import Problem
from traindyno.core.run.data_formats import BY_NAMES
from traindyno.core.run.workload import OF_CHAT, Dataset, Workload
from traindyno.core.suite.checks.job_limits_check import HYPERPARAMETER_CHARACTERS
from traindyno.core.suite.choices import DatasetFormat, Task

SECRET_ARN = re.compile(r"arn:aws:secretsmanager:[a-z0-9\-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@\-]+")
# As the training toolkit's own validate_entry_point
ENTRY_POINT = re.compile(r"(?!-)(?!\.\.?/)[A-Za-z0-9._+-]+(/(?!\.\.?(/|\Z))[A-Za-z0-9._+-]+)*")
# Fields that a task of the one kind or of the other does not have: what to do instead, by path.
ONLY_SCRIPT: Mapping[str, str] = {
    "source": "a built-in task brings its program",
    "entry_point": "a built-in task brings its program",
    "hyperparameters": "settings of a built-in task are fields of training",
}
ONLY_BUILT_IN: Mapping[str, str] = {
    "model.config": "your script builds its model: give it what it needs in hyperparameters",
    "model.revision": "the folder of the model is sent as it is",
    "tokenizer.train_vocabulary_size": "train the tokenizer in your script",
    "tokenizer.revision": "the folder of the tokenizer is sent as it is",
    "sequence_length": "give it to your script in hyperparameters",
    "label_count": "give it to your script in hyperparameters",
    "trust_remote_code": "your script decides which code it runs",
    "hub_token_secret": "read the secret in your script",
}


def check_workload(workload: Workload) -> Iterator[Problem]:
    yield from _check_hub_token(workload)
    is_script = workload.task is Task.SCRIPT
    for path, instead in (ONLY_BUILT_IN if is_script else ONLY_SCRIPT).items():
        if _value_at(workload, path):
            kind = "built-in tasks have" if is_script else "task script has"
            message = f"only {kind} it, expected nothing with task {workload.task}; {instead}"
            yield Problem(path=f"workload.{path}", message=message)
    yield from _check_alternatives(workload)
    if is_script:
        yield from _check_script(workload)
    else:
        yield from _check_built_in(workload)


def _value_at(workload: Workload, path: str) -> Any:
    value: Any = workload
    for name in path.split("."):
        value = getattr(value, name, None)
    return value


def _check_hub_token(workload: Workload) -> Iterator[Problem]:
    path = "workload.hub_token_secret"
    arn = workload.hub_token_secret
    if arn is None:
        return
    if not SECRET_ARN.fullmatch(arn):
        expected = "arn:aws:secretsmanager:<region>:<account>:secret:<name>"
        yield Problem(
            path=path,
            message=f"this is no ARN of a secret (not repeated here), expected {expected}",
        )


def _check_alternatives(workload: Workload) -> Iterator[Problem]:
    model = workload.model
    tokenizer = workload.tokenizer
    dataset = workload.dataset
    is_built_in = workload.task is not Task.SCRIPT
    if model and (model.path is None) == (model.config is None) and is_built_in:
        yield Problem(
            path="workload.model",
            message=f"got {_count(model.path)}, expected one of path and config",
        )
    kind = None if model is None or model.config is None else model.config.get("model_type", "")
    if is_built_in and kind is not None and not (isinstance(kind, str) and kind):
        yield Problem(
            path="workload.model.config.model_type",
            message=f"got {shown(kind) if kind else 'nothing'}, expected a model type of "
            "transformers, such as gpt2",
        )
    has_both = tokenizer and (tokenizer.path is None) == (tokenizer.train_vocabulary_size is None)
    if tokenizer and has_both and is_built_in:
        message = f"got {_count(tokenizer.path)}, expected one of path and train_vocabulary_size"
        yield Problem(path="workload.tokenizer", message=message)
    if dataset and (dataset.path is None) != (dataset.format is DatasetFormat.SYNTHETIC):
        expected = (
            "no path with format synthetic" if dataset.path else "a path, or format synthetic"
        )
        yield Problem(
            path="workload.dataset.path",
            message=f"got {dataset.path or 'nothing'}, expected {expected}",
        )


def _count(path: str | None) -> str:
    return "neither" if path is None else "both"


def _check_script(workload: Workload) -> Iterator[Problem]:
    for name in ("source", "entry_point"):
        if getattr(workload, name) is None:
            yield Problem(
                path=f"workload.{name}", message="got nothing, expected text with task script"
            )
    if workload.entry_point and not ENTRY_POINT.fullmatch(workload.entry_point):
        yield Problem(
            path="workload.entry_point",
            message=f"got {shown(workload.entry_point)}, expected a path inside source of letters, "
            "digits and . _ + - /, without . and .. as folders and not beginning with -: the "
            "training toolkit of the containers starts no other",
        )
    elif workload.entry_point and not workload.entry_point.endswith(".py"):
        yield Problem(
            path="workload.entry_point",
            message=f'got "{workload.entry_point}", expected a .py file of '
            "source; the training toolkit of the "
            "containers starts files, not modules: for python -m "
            "package.module, name a file that holds "
            'import runpy; runpy.run_module("package.module", run_name="__main__", alter_sys=True)',
        )


def _check_built_in(workload: Workload) -> Iterator[Problem]:
    for name in ("model", "dataset", "sequence_length"):
        if getattr(workload, name) is None:
            yield Problem(
                path=f"workload.{name}",
                message=f"got nothing, expected a value with task {workload.task}",
            )
    if workload.task is Task.SEQUENCE_CLASSIFICATION and workload.label_count is None:
        yield Problem(
            path="workload.label_count",
            message=f"got nothing, expected an integer with task {workload.task}",
        )
    yield from _check_chat(workload)
    reads_text = (
        workload.dataset is not None and workload.dataset.format is not DatasetFormat.SYNTHETIC
    )
    if (
        workload.model
        and workload.model.config is not None
        and workload.tokenizer is None
        and reads_text
    ):
        message = (
            "a model from a config brings no tokenizer: got nothing, expected path or "
            "train_vocabulary_size"
        )
        yield Problem(path="workload.tokenizer", message=message)
    size = len(json.dumps(plain_values(workload)))
    if size > HYPERPARAMETER_CHARACTERS:
        message = (
            f"got {size} characters as JSON, expected at most {HYPERPARAMETER_CHARACTERS} (a job's "
            "limit)"
        )
        yield Problem(path="workload", message=message)


def _check_chat(workload: Workload) -> Iterator[Problem]:
    dataset = workload.dataset
    if dataset is None:
        return
    if dataset.format is DatasetFormat.CHAT and workload.task is not Task.CAUSAL_LM:
        message = f"task {workload.task} reads no conversations, expected task causal-lm"
        yield Problem(path="workload.dataset.format", message=message)
    if dataset.format in BY_NAMES or dataset.format is DatasetFormat.HUB:
        return
    for name in OF_CHAT:
        if getattr(dataset, name) != getattr(Dataset(), name):
            message = (
                f"only conversations have it, and the format is {dataset.format}: expected format "
                "chat"
            )
            yield Problem(path=f"workload.dataset.{name}", message=message)
