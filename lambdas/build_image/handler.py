"""Custom resource: start the build of an image.

The build itself tells CloudFormation how it ended.
"""

import time
from typing import Any

from traindyno.aws import clients
from traindyno.aws.cloudformation_answer import answer_cloudformation
from traindyno.lab.build_image import start_build
from traindyno.lab.environment import BuildEnvironment, read_environment
from traindyno.lab.use_case import use_case


def handle(event: dict[str, Any], _context: object) -> None:
    # Without an answer, CloudFormation waits until its time limit; an error raised here is also in
    # the log.
    refusal: str | None = "the build could not be started; see the log of BuildImage"
    try:
        with use_case("BuildImage", request=event["RequestType"]) as line:
            refusal = None if event["RequestType"] == "Delete" else _start(event)
            line.update(refused=refusal)
    finally:
        if refusal or event["RequestType"] == "Delete":
            answer_cloudformation(event, refusal=refusal)


def _start(event: dict[str, Any]) -> str | None:
    return start_build(
        event,
        builds=clients.codebuild(),
        quotas=clients.service_quotas(),
        region=read_environment(BuildEnvironment).aws_region,
        sleep=time.sleep,
    )
