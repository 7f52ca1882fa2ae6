"""Start the build of an image for CloudFormation, and answer by CodeBuild's event of its end."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from traindyno.aws.image_builds import CodeBuildClient, NoBuildAllowed, run_build
from traindyno.aws.new_role import as_new_role

# Variables of a build: what its answer repeats of CloudFormation's request, and that it is the
# second one.
REQUEST = "CLOUDFORMATION_REQUEST"
IS_SECOND = "IS_SECOND_BUILD"
REPEATED = ("ResponseURL", "StackId", "RequestId", "LogicalResourceId", "PhysicalResourceId")
# A new role's permissions, or the machine, may be there by then.
SECONDS_BEFORE_SECOND = 30
# CloudFormation takes an answer of 4,096 bytes.
MOST_CHARACTERS = 1_500


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildEnd:
    """End of a build.

    ``is_final`` says that no other build follows; ``refusal`` why there is no image, if so.
    """

    is_final: bool
    refusal: str | None


def start_build(
    event: Mapping[str, Any], *, builds: CodeBuildClient, sleep: Callable[[float], None]
) -> str | None:
    """Why no build was started; None where one was."""
    request = {name: event[name] for name in REPEATED if name in event}
    project = event["ResourceProperties"]["Project"]
    return _start(builds, project, {REQUEST: json.dumps(request)}, sleep=sleep)


def _start(
    builds: CodeBuildClient,
    project: str,
    variables: Mapping[str, str],
    *,
    sleep: Callable[[float], None],
) -> str | None:
    try:
        as_new_role(lambda: run_build(builds, project, variables), sleep=sleep)
    except NoBuildAllowed as error:
        return f"CodeBuild runs no build of {project}, whatever its quota says: {error}"
    return None


def request_of(detail: Mapping[str, Any]) -> dict[str, Any] | None:
    """CloudFormation's request that an ended build answers; None if a person started the build."""
    variables = _variables(detail)
    return json.loads(variables[REQUEST]) if REQUEST in variables else None


def end_build(
    detail: Mapping[str, Any], *, builds: CodeBuildClient, sleep: Callable[[float], None]
) -> BuildEnd:
    """A build that failed before its commands is started once more."""
    if detail["build-status"] == "SUCCEEDED":
        return BuildEnd(is_final=True, refusal=None)
    variables = _variables(detail)
    if _failed_before_its_commands(detail) and IS_SECOND not in variables:
        sleep(SECONDS_BEFORE_SECOND)
        again = {REQUEST: variables[REQUEST], IS_SECOND: "yes"}
        refusal = _start(builds, detail["project-name"], again, sleep=sleep)
        return BuildEnd(is_final=refusal is not None, refusal=refusal)
    return BuildEnd(is_final=True, refusal="; ".join(_reasons(detail))[:MOST_CHARACTERS])


def _variables(detail: Mapping[str, Any]) -> dict[str, str]:
    environment = detail["additional-information"]["environment"]
    return {
        variable["name"]: variable["value"] for variable in environment["environment-variables"]
    }


def _failed_before_its_commands(detail: Mapping[str, Any]) -> bool:
    """A person stopped the others, or they waited for a machine as long as they may."""
    phases = {phase["phase-type"] for phase in detail["additional-information"].get("phases", [])}
    return detail["build-status"] in {"FAILED", "FAULT"} and "BUILD" not in phases


def _reasons(detail: Mapping[str, Any]) -> Iterator[str]:
    information = detail["additional-information"]
    yield f"the build of {detail['project-name']} ended as {detail['build-status']}"
    for phase in information.get("phases", []):
        if phase.get("phase-status", "SUCCEEDED") != "SUCCEEDED":
            said = " ".join(text for text in phase.get("phase-context", []) if text.strip(" :"))
            yield f"phase {phase['phase-type']}: {said or phase['phase-status']}"
    if link := information.get("logs", {}).get("deep-link"):
        yield f"its log: {link}"
