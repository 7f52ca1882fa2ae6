"""Each field that only one kind of task has is refused in the other, with what to do instead."""

from typing import Any

import pytest

from tests.unit.suites import problems, script_document, small_document
from traindyno.core.suite.checks.workload_check import ONLY_BUILT_IN, ONLY_SCRIPT

VALUES: dict[str, Any] = {
    "source": "code",
    "entry_point": "train.py",
    "hyperparameters": {"x": 1},
    "model.config": {"model_type": "gpt2"},
    "model.revision": "main",
    "tokenizer.train_vocabulary_size": 300,
    "tokenizer.revision": "main",
    "sequence_length": 16,
    "label_count": 2,
    "trust_remote_code": True,
    "hub_token_secret": "arn:aws:secretsmanager:us-east-1:111111111111:secret:x",
}
S3 = "s3://bucket/x/"


def with_value(document: dict[str, Any], path: str) -> dict[str, Any]:
    name, _, inner = path.partition(".")
    value = {"path": S3, inner: VALUES[path]} if inner else VALUES[path]
    return {**document, "workload": {**document["workload"], name: value}}


@pytest.mark.parametrize("path", sorted(ONLY_BUILT_IN))
def test_a_script_has_no_field_of_a_built_in_task(path: str) -> None:
    (problem,) = problems(with_value(script_document(), path))
    assert problem == (
        f"workload.{path}: only built-in tasks have it, expected nothing with task script; "
        f"{ONLY_BUILT_IN[path]}"
    )


@pytest.mark.parametrize("path", sorted(ONLY_SCRIPT))
def test_a_built_in_task_has_no_field_of_a_script(path: str) -> None:
    lines = problems(with_value(small_document(), path))
    assert any(line.startswith(f"workload.{path}: only task script has it") for line in lines)


def test_a_script_has_a_model_and_channels_of_any_name() -> None:
    document = script_document()
    workload = {**document["workload"], "model": S3}
    assert problems({**document, "workload": workload}) == []
    names = dict.fromkeys(("model", "tokenizer", "validation", "a.b-c_1"), S3)
    assert problems({**document, "workload": {**document["workload"], "channels": names}}) == []
    assert problems({**document, "workload": {**workload, "channels": {"model": S3}}}) == [
        'workload.channels.model: got "model", the channel of model; expected another name'
    ]
    assert problems({**document, "workload": {**workload, "channels": {"code": S3}}}) == [
        'workload.channels.code: got "code", the channel of your code where a container has no '
        "network, as in SageMaker's SDK; expected another name"
    ]


@pytest.mark.parametrize(
    ("task", "dataset", "told"),
    [
        ("causal-lm", {"format": "chat", "loss_on": "all", "too_long": "leave-out"}, ""),
        ("causal-lm", {"loss_on": "all"}, ""),
        ("masked-lm", {"format": "chat"}, "dataset.format: task masked-lm reads no conversations"),
        ("causal-lm", {"format": "csv", "loss_on": "all"}, "loss_on: only conversations have it"),
        ("causal-lm", {"format": "text", "chat_template": "a"}, "chat_template: only conversat"),
        ("causal-lm", {"format": "chat", "loss_on": "some"}, 'loss_on: got "some", expected'),
    ],
)
def test_conversations_are_of_causal_lm_and_have_fields_of_their_own(
    task: str, dataset: dict[str, str], told: str
) -> None:
    document = small_document()
    given = {**document["workload"], "task": task, "dataset": {"path": S3, **dataset}}
    lines = problems({**document, "workload": given})
    assert [told in line for line in lines] == ([True] if told else [])
