"""AWS settings that lead to no account are named in one sentence, in programs and on the command
line.
"""

import inspect
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import Any, cast

import boto3
import pytest
from botocore import exceptions
from botocore.exceptions import BotoCoreError, ClientError

from traindyno.api import executions
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
from traindyno.cli.lab_choice import LabChoice
from traindyno.cli.main import app

OF_OTHER_THINGS = {
    "InvalidS3UsEast1RegionalEndpointConfigError",
    "InvalidSTSRegionalEndpointsConfigError",
    "ServiceNotInRegionError",
}
ABOUT_SETTINGS = ("Credential", "Profile", "Token", "SSO", "Login", "Region")
CLASSES = {name: kind for name, kind in vars(exceptions).items() if inspect.isclass(kind)}


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    nowhere = dict.fromkeys(("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"), os.devnull)
    monkeypatch.setattr(
        os, "environ", {**nowhere, "AWS_EC2_METADATA_DISABLED": "true", "HOME": "/nowhere"}
    )
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    clients.forget()
    yield
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
def test_each_exception_is_an_unreachable_account(kind: type[Any]) -> None:
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
def test_refused_credentials_are_named(code: str) -> None:
    with (
        pytest.raises(AccountUnreachable, match=f"AWS refuses the credentials \\({code}\\)"),
        account_of({}),
    ):
        raise answered(code)


def test_an_expired_session_is_begun_again() -> None:
    expired = exceptions.TokenRetrievalError(provider="sso", error_msg="Token has expired")
    for error in (expired, answered("ExpiredTokenException")):
        assert str(settings_problem(error)).endswith(
            "sign in again, for example with `aws sso login`"
        )
    assert "sign in" not in str(settings_problem(answered("InvalidAccessKeyId")))


@pytest.mark.parametrize(
    "error", [answered("AccessDenied"), answered("Throttling"), ValueError("x")]
)
def test_other_errors_stay_the_same(error: Exception) -> None:
    assert settings_problem(error) is None
    with pytest.raises(type(error)) as raised, account_of({}):
        raise error
    assert raised.value is error


def test_a_chosen_profile_comes_before_keys_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As `doctor --profile` reads it. The keys stay, as a profile may refer to them."""
    config = tmp_path / "config"
    config.write_text("[profile work]\naws_access_key_id = chosen\naws_secret_access_key = x\n")
    keys = {"AWS_ACCESS_KEY_ID": "own", "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "eu-west-1"}
    os.environ.update({**keys, "AWS_CONFIG_FILE": str(config), "AWS_DEFAULT_REGION": "eu-west-1"})
    monkeypatch.setattr(Lab, "find", lambda _: key_of_clients())
    with Lab(profile="work").opened() as found:
        key: object = found
        assert key == "chosen"
        assert os.environ["AWS_ACCESS_KEY_ID"] == "own"
    assert key_of_clients() == "own"
    monkeypatch.setattr(executions, "check_startable", lambda _: None)
    monkeypatch.setattr(executions, "plan_in_account", lambda *_, **__: key_of_clients())
    planned: object = executions.plan(cast("Any", None), lab=Lab(profile="work"))
    assert planned == "chosen"
    clients.forget()
    LabChoice(profile="work").choose()
    assert key_of_clients() == "chosen"


def key_of_clients() -> str:
    client: Any = clients.s3()
    key: str = client._get_credentials().access_key
    return key


def test_a_program_and_the_command_line_name_a_missing_profile(
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
