"""The AWS account of this process's clients, for as long as a block of code lasts; what of it a lab
needs.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import boto3
from botocore import exceptions
from botocore.exceptions import BotoCoreError, ClientError

from traindyno.aws import clients
from traindyno.aws.client_errors import error_code
from traindyno.core.errors import TraindynoError

# What botocore raises where it has no credentials, no region, no such profile, or settings that it
# can't read.
SETTINGS_ERRORS = (
    exceptions.NoCredentialsError,
    exceptions.PartialCredentialsError,
    exceptions.CredentialRetrievalError,
    exceptions.UnknownCredentialError,
    exceptions.NoAuthTokenError,
    exceptions.TokenRetrievalError,
    exceptions.UnknownTokenProviderError,
    exceptions.SSOError,
    exceptions.LoginError,
    exceptions.ProfileNotFound,
    exceptions.NoRegionError,
    exceptions.InvalidRegionError,
    exceptions.UnknownRegionError,
    exceptions.ConfigParseError,
    exceptions.ConfigNotFound,
    exceptions.InvalidConfigError,
    exceptions.InfiniteLoopConfigError,
)
# Of these, the ones of a session that has expired or was not begun; most don't say what to do.
SESSION_ERRORS = (exceptions.SSOError, exceptions.TokenRetrievalError)
SIGN_IN = "; sign in again, for example with `aws sso login`"
# What AWS answers to credentials that have expired or are none.
REFUSED_CREDENTIALS = {
    "ExpiredToken",
    "ExpiredTokenException",
    "RequestExpired",
    "InvalidClientTokenId",
    "UnrecognizedClientException",
    "AuthFailure",
    "InvalidAccessKeyId",
    "InvalidToken",
    "SignatureDoesNotMatch",
    "InvalidSignatureException",
}


class AccountUnreachable(TraindynoError):
    """The AWS settings lead to no account: no such profile, no region, or credentials that are
    missing or expired.
    """


def settings_problem(error: Exception) -> str | None:
    """What is wrong with the AWS settings; None for an error that has another cause."""
    if isinstance(error, SETTINGS_ERRORS):
        return str(error).rstrip(".") + SIGN_IN * isinstance(error, SESSION_ERRORS)
    code = error.response.get("Error", {}).get("Code") if isinstance(error, ClientError) else None
    again = SIGN_IN * ("Expired" in str(code))
    return f"AWS refuses the credentials ({code}){again}" if code in REFUSED_CREDENTIALS else None


def use_profile(profile: str | None) -> None:
    """Give clients that are made later this profile's credentials.

    To botocore, keys in the environment come before a profile that only AWS_PROFILE names.
    """
    if profile:
        boto3.setup_default_session(profile_name=profile)


@contextmanager
def account_of(environment: Mapping[str, str], profile: str | None = None) -> Iterator[None]:
    """Inside, environment variables and clients are as in ``environment``, and with ``profile`` of
    that profile; afterwards, what they were before.

    A program that lives longer than a command, such as a notebook, keeps its own account this way.
    It is not for several threads: a process has one environment. Raises AccountUnreachable.
    """
    before = dict(os.environ)
    session = boto3.DEFAULT_SESSION
    try:
        _enter(environment)
        use_profile(profile)
        yield
    except (BotoCoreError, ClientError) as error:
        problem = settings_problem(error)
        if problem is None:
            raise
        expected = (
            "expected a profile of your AWS settings (aws configure), or credentials and a region "
            "in the environment"
        )
        raise AccountUnreachable(f"{problem}: {expected}") from error
    finally:
        _enter(before)
        boto3.DEFAULT_SESSION = session


def _enter(environment: Mapping[str, str]) -> None:
    """A session and its clients keep the credentials and the endpoints that they first saw."""
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    os.environ.update(environment)
    boto3.DEFAULT_SESSION = None
    clients.forget()


def bootstrap_version(ssm: Any, qualifier: str) -> int | None:
    """None where the region is not bootstrapped for the CDK with this qualifier."""
    try:
        return int(
            ssm.get_parameter(Name=f"/cdk-bootstrap/{qualifier}/version")["Parameter"]["Value"]
        )
    except ClientError as error:
        if error_code(error) == "ParameterNotFound":
            return None
        raise


def pull_problem(ecr: Any, uri: str) -> str | None:
    """Why the account can't pull the image from another account's registry; None if it can."""
    registry, _, image = uri.partition("/")
    repository, _, tag = image.partition(":")
    wanted = {
        "registryId": registry.partition(".")[0],
        "repositoryName": repository,
        "imageIds": [{"imageTag": tag}],
    }
    try:
        failures = ecr.batch_get_image(**wanted).get("failures", [])
    except ClientError as error:
        return str(error)
    return next(
        (f"{failure.get('failureCode')}: {failure.get('failureReason')}" for failure in failures),
        None,
    )
