"""Secrets in a suite are refused, and never repeated."""

from typing import Any

import pytest

from tests.unit.suites import problems, script_document, small_document
from traindyno.core.suite.checks.secrets_check import find_secrets
from traindyno.core.suite.checks.suite_check import parse_suite

HUB = "hf_" + "a1B2" * 9
SECRET_ARN = "arn:aws:secretsmanager:us-east-1:123456789012:secret:hub-AbCdEf"


# Each name with a value that a secret of this name could have, and each value under a name that
# says nothing.
PASSWORD = "hunter2!"
LONG = "0123456789abcdef" * 2
SECRET_NAMES = {
    **dict.fromkeys(
        ("DB_PASSWD", "PGPASSWORD", "dbPassword", "db-password", "MYSQL_PWD", "smtp_pass"), PASSWORD
    ),
    **dict.fromkeys(("passphrase", "CLIENT_SECRET", "credentials", "PASSWORD_2"), PASSWORD),
    **dict.fromkeys(
        (
            "API_KEY",
            "apikey",
            "APIKey",
            "AWS_SECRET_ACCESS_KEY",
            "private_key",
            "storage.account.key",
        ),
        LONG,
    ),
    **dict.fromkeys(("TOKEN", "hub_token", "accessToken", "GITHUB_PAT"), LONG),
}
SECRET_VALUES = (
    HUB,
    "AKIA" + "A" * 16,
    "ghp_" + "a" * 36,
    "sk-" + "a" * 40,
    "-----BEGIN RSA PRIVATE KEY-----",
    f"my_{HUB}",
    "postgres://user:pw@host/db",
    "redis://:pw@host",
    "jdbc:mysql://u:p/w@h:3306",
    f"Authorization: Bearer {LONG}",
    "Server=x;Password=hunter2!;",
    '{"db_password": "hunter2!"}',
    "--db-password hunter2! --x 1",
    f"a=1&api_key={LONG}",
)
NO_SECRETS = {
    **{
        "PWD": "/opt/ml",
        "forward_pass": "2",
        "use_password": "true",
        "key": "value",
        "tokenizer": "gpt2",
    },
    **{"bos_token": "begin_of_text", "mask_token": "mask", "max_token": "2048", "keys": "a,b"},
    **{
        "endpoint": "http://host:8080/a@b",
        "data": "s3://bucket/a:b@c",
        "prompt": "Write-a-token:it-is-short",
    },
    **{
        "tokens": "one,two,three,four,five",
        "DB_SECRET": SECRET_ARN,
        "password_file": "/run/x",
        "optimizer": "adamw",
    },
}


def problem(document: dict[str, Any]) -> str:
    (line,) = problems(document)
    return line


@pytest.mark.parametrize(
    ("workload", "path", "kind"),
    [
        (
            {"environment": {"HF_TOKEN": HUB}},
            "workload.environment.HF_TOKEN",
            "a Hugging Face token",
        ),
        (
            {"hyperparameters": {"token": HUB}},
            "workload.hyperparameters.token",
            "a Hugging Face token",
        ),
        (
            {"hyperparameters": {"key": "AKIA" + "A" * 16}},
            "workload.hyperparameters.key",
            "an AWS access key",
        ),
        ({"environment": {"GIT": "ghp_" + "a" * 36}}, "workload.environment.GIT", "a GitHub token"),
        ({"environment": {"KEY": "sk-" + "a" * 40}}, "workload.environment.KEY", "an API key"),
        (
            {"environment": {"WANDB_API_KEY": "0123456789abcdef" * 2}},
            "workload.environment.WANDB_API_KEY",
            "a secret",
        ),
    ],
)
def test_a_likely_secret_is_refused_with_the_remedy(
    workload: dict[str, Any], path: str, kind: str
) -> None:
    text = problem(script_document(workload={**script_document()["workload"], **workload}))
    assert text.startswith(f"{path}: this looks like {kind}; keep it in AWS Secrets Manager")
    assert not [value for part in workload.values() for value in part.values() if value in text]


def test_a_secret_in_a_matrix_is_found_too() -> None:
    document = script_document(
        matrix={"instance": ["ml.g5.xlarge"], "hyperparameters.token": ["x", HUB]}
    )
    assert problem(document).startswith("matrix.hyperparameters.token[1]: this looks like")


def test_a_gated_models_token_is_named_by_its_secret() -> None:
    workload = {**small_document()["workload"], "hub_token_secret": SECRET_ARN}
    assert (
        parse_suite({**small_document(), "workload": workload}).workload.hub_token_secret
        == SECRET_ARN
    )
    wrong = {**workload, "hub_token_secret": "my-token"}
    text = problem({**small_document(), "workload": wrong})
    assert text.startswith("workload.hub_token_secret: ")
    assert "expected arn:aws:secretsmanager:<region>:<account>:secret:" in text
    assert "my-token" not in text


def test_names_and_values_of_secrets_are_found_at_each_depth() -> None:
    for name, value in SECRET_NAMES.items():
        for shape in (value, [value], {"inner": value}, {"inner": [{"more": value}]}):
            for document in ({"environment": {name: shape}}, {"hyperparameters": {name: shape}}):
                assert list(find_secrets({"workload": document})), (name, shape)
            assert list(find_secrets({"matrix": {f"hyperparameters.{name}": [shape]}})), (
                name,
                shape,
            )
    for value in SECRET_VALUES:
        assert list(find_secrets({"hyperparameters": {"plain": value}})), value
    assert list(find_secrets({"hyperparameters": {"password": 12345678}}))


def test_flags_names_and_addresses_are_no_secrets() -> None:
    for name, value in NO_SECRETS.items():
        assert (
            list(find_secrets({"environment": {name: value}, "hyperparameters": {name: value}}))
            == []
        ), name
    assert (
        list(find_secrets({"hyperparameters": {"password": False, "n_pass": 3, "max_token": 4096}}))
        == []
    )
