"""CodeBuild's builds of the lab's images."""

from collections.abc import Mapping
from typing import Any, Protocol

from botocore.exceptions import ClientError

from traindyno.aws.client_errors import error_code
from traindyno.core.errors import TraindynoError


class NoBuildAllowed(TraindynoError):
    """The account's limit is 0: the limit of a new account may be lower than its quota, and
    StartBuild alone tells.
    """


class CodeBuildClient(Protocol):
    """The calls of boto3's ``codebuild`` client that are used here."""

    def start_build(self, **request: Any) -> Any: ...


def run_build(builds: CodeBuildClient, project: str, variables: Mapping[str, str]) -> None:
    given = [
        {"name": name, "value": value, "type": "PLAINTEXT"} for name, value in variables.items()
    ]
    try:
        builds.start_build(projectName=project, environmentVariablesOverride=given)
    except ClientError as error:
        if error_code(error) != "AccountLimitExceededException":
            raise
        raise NoBuildAllowed(
            f"{error}. Ask AWS Support to raise CodeBuild's limit on builds, then try again"
        ) from error
