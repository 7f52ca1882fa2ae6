"""Custom resource: start the build of an image. The build itself tells CloudFormation how it ended."""

import time
from typing import Any

from traindyno.aws import clients
from traindyno.aws.cloudformation_answer import Answer, answer_cloudformation
from traindyno.lab.build_image import start_build
from traindyno.lab.environment import BuildEnvironment, read_environment
from traindyno.lab.use_case import use_case


def handle(event: dict[str, Any], _context: object) -> None:
    # Without an answer, CloudFormation waits until its time limit; an error raised here is also in the log.
    answer: Answer | None = Answer(is_well=False, reason="the build could not be started; see the log of BuildImage")
    try:
        with use_case("BuildImage", request=event["RequestType"]) as line:
            if event["RequestType"] == "Delete":
                answer = Answer(is_well=True, reason="")
            else:
                refusal = start_build(
                    event,
                    builds=clients.codebuild(),
                    quotas=clients.service_quotas(),
                    region=read_environment(BuildEnvironment).aws_region,
                    sleep=time.sleep,
                )
                line.note(refused=refusal)
                answer = Answer(is_well=False, reason=refusal) if refusal else None
    finally:
        if answer:
            answer_cloudformation(event, answer)
