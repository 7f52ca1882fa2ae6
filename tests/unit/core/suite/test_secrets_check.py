"""Secrets in a suite are refused, and never repeated."""

from typing import Any

import pytest

from tests.unit.suites import script_document, small_document
from traindyno.core.errors import SuiteInvalid
from traindyno.core.suite.checks.accepted_suite import parse_suite

HUB = "hf_" + "a1B2" * 9
SECRET_ARN = "arn:aws:secretsmanager:us-east-1:123456789012:secret:hub-AbCdEf"


def problem(document: dict[str, Any]) -> str:
    with pytest.raises(SuiteInvalid) as invalid:
        parse_suite(document)
    (found,) = map(str, invalid.value.problems)
    return found


@pytest.mark.parametrize(
    ("workload", "path", "kind"),
    [
        ({"environment": {"HF_TOKEN": HUB}}, "workload.environment.HF_TOKEN", "a Hugging Face token"),
        ({"hyperparameters": {"token": HUB}}, "workload.hyperparameters.token", "a Hugging Face token"),
        ({"hyperparameters": {"key": "AKIA" + "A" * 16}}, "workload.hyperparameters.key", "an AWS access key"),
        ({"environment": {"GIT": "ghp_" + "a" * 36}}, "workload.environment.GIT", "a GitHub token"),
        ({"environment": {"KEY": "sk-" + "a" * 40}}, "workload.environment.KEY", "an API key"),
        ({"environment": {"WANDB_API_KEY": "0123456789abcdef" * 2}}, "workload.environment.WANDB_API_KEY", "a secret"),
    ],
)
def test_what_looks_like_a_secret_is_refused_with_what_to_do(workload: dict[str, Any], path: str, kind: str) -> None:
    text = problem(script_document(workload={**script_document()["workload"], **workload}))
    assert text.startswith(f"{path}: this looks like {kind}; keep it in AWS Secrets Manager")
    assert not [value for part in workload.values() for value in part.values() if value in text]


def test_a_secret_in_a_matrix_is_found_too() -> None:
    document = script_document(matrix={"instance": ["ml.g5.xlarge"], "hyperparameters.token": ["x", HUB]})
    assert problem(document).startswith("matrix.hyperparameters.token[1]: this looks like")


def test_names_of_special_tokens_and_short_values_are_no_secrets() -> None:
    workload = {
        **script_document()["workload"],
        "hyperparameters": {"pad_token": "<|endoftext|>", "max_tokens": "512", "tokenizer": "gpt2"},
        "environment": {"BOS_TOKEN": "<s>", "HUB_SECRET": SECRET_ARN},
    }
    assert parse_suite(script_document(workload=workload)).workload.environment["BOS_TOKEN"] == "<s>"


def test_a_gated_models_token_is_named_by_its_secret() -> None:
    workload = {**small_document()["workload"], "hub_token_secret": SECRET_ARN}
    assert parse_suite({**small_document(), "workload": workload}).workload.hub_token_secret == SECRET_ARN
    wrong = {**workload, "hub_token_secret": "my-token"}
    text = problem({**small_document(), "workload": wrong})
    assert text.startswith("workload.hub_token_secret: ")
    assert "expected arn:aws:secretsmanager:<region>:<account>:secret:" in text
    assert "my-token" not in text
