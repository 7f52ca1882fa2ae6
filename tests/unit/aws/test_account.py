"""AWS settings that lead to no account are named in one sentence, in programs and on the command
line.
"""

import inspect
import os
import sys
from string import Formatter
from typing import Any

import boto3
import pytest
from botocore import exceptions
from botocore.exceptions import BotoCoreError, ClientError

from traindyno.api.executions import SuiteExecution, find_execution
from traindyno.api.lab_target import Lab
from traindyno.aws import clients
from traindyno.aws.account import (
    REFUSED_CREDENTIALS,
    SETTINGS_ERRORS,
    AccountUnreachable,
    account_of,
    settings_problem,
)
from traindyno.cli.main import app

OF_OTHER_THINGS = {
    "InvalidS3UsEast1RegionalEndpointConfigError",
    "InvalidSTSRegionalEndpointsConfigError",
    "ServiceNotInRegionError",
}
ABOUT_SETTINGS = ("Credential", "Profile", "Token", "SSO", "Login", "Region")
CLASSES = {name: each for name, each in vars(exceptions).items() if inspect.isclass(each)}


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = dict.fromkeys(("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"), os.devnull)
    monkeypatch.setattr(
        os, "environ", {**nowhere, "AWS_EC2_METADATA_DISABLED": "true", "HOME": "/nowhere"}
    )
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    clients.forget()


def made(kind: type[Any]) -> Any:
    """With a word for each gap of its message."""
    return kind(**{gap: gap for _, gap, _, _ in Formatter().parse(kind.fmt) if gap})


def test_each_error_of_botocore_about_settings_is_known() -> None:
    about = {
        name
        for name, kind in CLASSES.items()
        if issubclass(kind, BotoCoreError) and any(word in name for word in ABOUT_SETTINGS)
    }
    assert {
        name for name in about if not issubclass(CLASSES[name], SETTINGS_ERRORS)
    } == OF_OTHER_THINGS


@pytest.mark.parametrize("kind", sorted(SETTINGS_ERRORS, key=str))
def test_each_of_them_is_the_account_that_is_unreachable(kind: type[Any]) -> None:
    with (
        pytest.raises(
            AccountUnreachable, match="expected a profile of your AWS settings"
        ) as raised,
        account_of({}),
    ):
        raise made(kind)
    assert isinstance(raised.value.__cause__, kind)


def answered(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "DescribeStacks")


@pytest.mark.parametrize("code", sorted(REFUSED_CREDENTIALS))
def test_credentials_that_aws_refuses_are_named(code: str) -> None:
    with (
        pytest.raises(AccountUnreachable, match=f"AWS refuses the credentials \\({code}\\)"),
        account_of({}),
    ):
        raise answered(code)


@pytest.mark.parametrize(
    "error", [answered("AccessDenied"), answered("Throttling"), ValueError("x")]
)
def test_other_errors_stay_what_they_are(error: Exception) -> None:
    assert settings_problem(error) is None
    with pytest.raises(type(error)) as raised, account_of({}):
        raise error
    assert raised.value is error


def test_a_program_and_the_command_line_name_a_profile_that_does_not_exist(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = Lab(profile="nobody", region="us-east-1")
    for call in (lambda: find_execution("x", lab=lab), SuiteExecution("x", lab).verdict):
        with pytest.raises(
            AccountUnreachable, match=r"profile \(nobody\) could not be found: expected a profile"
        ):
            call()
    monkeypatch.setattr(sys, "argv", ["traindyno", "import", "x", "--profile", "nobody"])
    with pytest.raises(SystemExit) as ended:
        app()
    assert ended.value.code == 2
    said = " ".join(capsys.readouterr().err.replace("│", "").split())
    assert "'--profile': got \"nobody\", expected a profile of your AWS settings" in said
