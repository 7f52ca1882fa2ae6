"""The fields that each task's workload needs, and those that it does not use."""

import json
import re
from collections.abc import Iterator

from traindyno.core.documents.problems import shown
from traindyno.core.errors import Problem
from traindyno.core.suite.checks.job_limits_check import HYPERPARAMETER_CHARACTERS
from traindyno.core.suite.choices import DatasetFormat, Task
from traindyno.core.suite.suite_file import suite_converter
from traindyno.core.suite.workload import Workload

SECRET_ARN = re.compile(r"arn:aws:secretsmanager:[a-z0-9\-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@\-]+")
# As the training toolkit's own validate_entry_point
ENTRY_POINT = re.compile(r"(?!-)(?!\.\.?/)[A-Za-z0-9._+-]+(/(?!\.\.?(/|\Z))[A-Za-z0-9._+-]+)*")
SCRIPT_FIELDS = ("source", "entry_point", "hyperparameters")


def check_workload(workload: Workload) -> Iterator[Problem]:
    yield from _check_alternatives(workload)
    yield from _check_hub_token(workload)
    if workload.task is Task.SCRIPT:
        yield from _check_script(workload)
    else:
        yield from _check_built_in(workload)


def _check_hub_token(workload: Workload) -> Iterator[Problem]:
    path, arn = "workload.hub_token_secret", workload.hub_token_secret
    if arn is None:
        return
    if not SECRET_ARN.fullmatch(arn):
        expected = "arn:aws:secretsmanager:<region>:<account>:secret:<name>"
        yield Problem(
            path=path,
            message=f"this is no ARN of a secret (not repeated here), expected {expected}",
        )
    if workload.task is Task.SCRIPT:
        yield Problem(
            path=path,
            message="task script does not use it, expected nothing; read the secret in your script",
        )


def _check_alternatives(workload: Workload) -> Iterator[Problem]:
    model, tokenizer, dataset = workload.model, workload.tokenizer, workload.dataset
    if model and (model.path is None) == (model.config is None):
        yield Problem(
            path="workload.model",
            message=f"got {_count(model.path)}, expected one of path and config",
        )
    if model and model.config is not None and "model_type" not in model.config:
        yield Problem(
            path="workload.model.config.model_type",
            message="got nothing, expected a model type of transformers, such as gpt2",
        )
    if tokenizer and (tokenizer.path is None) == (tokenizer.train_vocabulary_size is None):
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
    for name in SCRIPT_FIELDS:
        if getattr(workload, name):
            yield Problem(
                path=f"workload.{name}",
                message=f"only task script has it, expected nothing with task {workload.task}",
            )
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
    size = len(json.dumps(suite_converter().unstructure(workload)))
    if size > HYPERPARAMETER_CHARACTERS:
        message = (
            f"got {size} characters as JSON, expected at most {HYPERPARAMETER_CHARACTERS} (a job's "
            "limit)"
        )
        yield Problem(path="workload", message=message)
