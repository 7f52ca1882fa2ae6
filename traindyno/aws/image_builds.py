"""CodeBuild's builds: one of an image, and a trial that does nothing."""

import json
import secrets
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, Protocol

from botocore.exceptions import ClientError

from traindyno.aws.client_errors import error_code
from traindyno.aws.new_role import as_new_role
from traindyno.core.errors import TraindynoError

# The environment in which a lab's CPU image is built.
ENVIRONMENT = {
    "type": "LINUX_CONTAINER",
    "image": "aws/codebuild/standard:7.0",
    "computeType": "BUILD_GENERAL1_MEDIUM",
}
BUILD_SPEC = {"version": 0.2, "phases": {"build": {"commands": ["true"]}}}
TRUST = {
    "Effect": "Allow",
    "Action": "sts:AssumeRole",
    "Principal": {"Service": "codebuild.amazonaws.com"},
}
# CodeBuild's shortest; it counts waiting and running by themselves.
TRIAL_MINUTES = 5
SECONDS_BETWEEN_LOOKS = 5


class NoBuildAllowed(TraindynoError):
    """The account's limit is 0: that of a new account may be lower than its quota, and StartBuild
    alone tells.
    """


class CodeBuildClient(Protocol):
    """The calls of boto3's ``codebuild`` client that are used here."""

    def start_build(self, **request: Any) -> Any: ...


def run_build(
    builds: CodeBuildClient, project: str, variables: Mapping[str, str], **changes: Any
) -> str:
    """Start a build of the project: its id. ``changes`` are further members of the request."""
    given = [
        {"name": name, "value": value, "type": "PLAINTEXT"} for name, value in variables.items()
    ]
    try:
        answer = builds.start_build(
            projectName=project, environmentVariablesOverride=given, **changes
        )
    except ClientError as error:
        if error_code(error) != "AccountLimitExceededException":
            raise
        raise NoBuildAllowed(
            f"{error}. Ask AWS Support to raise CodeBuild's limit on builds, then try again"
        ) from error
    return str(answer["build"]["id"])


def try_build(
    builds: Any, iam: Any, *, sleep: Callable[[float], None], tell: Callable[[str], None]
) -> str | None:
    """Why a build that does nothing failed; None if it ran.

    Its project, and its role without a permission, are deleted afterwards. Raises NoBuildAllowed.
    """
    name = f"traindyno-trial-{secrets.token_hex(4)}"
    tell(f"creating the role and the CodeBuild project {name}, which are deleted after the build")
    with ExitStack() as made:
        trust = json.dumps({"Version": "2012-10-17", "Statement": [TRUST]})
        role = iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust)["Role"]["Arn"]
        made.callback(iam.delete_role, RoleName=name)
        project = {
            "name": name,
            "source": {"type": "NO_SOURCE", "buildspec": json.dumps(BUILD_SPEC)},
            "artifacts": {"type": "NO_ARTIFACTS"},
            "environment": ENVIRONMENT,
            "serviceRole": role,
            "timeoutInMinutes": TRIAL_MINUTES,
            "queuedTimeoutInMinutes": TRIAL_MINUTES,
            "logsConfig": {kind: {"status": "DISABLED"} for kind in ("cloudWatchLogs", "s3Logs")},
        }
        # CodeBuild's answer until it may assume the role.
        as_new_role(
            lambda: builds.create_project(**project), sleep=sleep, denied={"InvalidInputException"}
        )
        made.callback(builds.delete_project, name=name)
        build_id, status, build = run_build(builds, name, {}), "IN_PROGRESS", {}
        while status == "IN_PROGRESS":
            sleep(SECONDS_BETWEEN_LOOKS)
            (build,) = builds.batch_get_builds(ids=[build_id])["builds"]
            status = build.get("buildStatus", status)
            tell(f"build {build_id}: {build.get('currentPhase', status)}")
    said = [
        each.get("message", "")
        for phase in build.get("phases", [])
        for each in phase.get("contexts", [])
    ]
    return None if status == "SUCCEEDED" else ": ".join([status, *filter(None, said)])
