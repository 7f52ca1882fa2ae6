"""Custom resource: start the build of an image; CodeBuild's event of its end gives the answer."""

import time
from typing import Any

from traindyno.aws import clients
from traindyno.aws.cloudformation_answer import answer_cloudformation
from traindyno.lab.build_image import BuildEnd, end_build, request_of, start_build
from traindyno.lab.use_case import use_case

# Without an answer, CloudFormation waits until its time limit; an error raised here is also in the
# log.
NOT_STARTED = "the build could not be started; see the log of BuildImage"


def handle(event: dict[str, Any], _context: object) -> None:
    if "detail" in event:
        _end(event["detail"])
    else:
        _start(event)


def _start(event: dict[str, Any]) -> None:
    is_deletion = event["RequestType"] == "Delete"
    refusal: str | None = None if is_deletion else NOT_STARTED
    try:
        with use_case("BuildImage", request=event["RequestType"]) as line:
            if not is_deletion:
                refusal = start_build(event, builds=clients.codebuild(), sleep=time.sleep)
            line.update(refused=refusal)
    finally:
        if refusal or is_deletion:
            answer_cloudformation(event, refusal=refusal)


def _end(detail: dict[str, Any]) -> None:
    request = request_of(detail)
    if request is None:
        return
    end = BuildEnd(is_final=True, refusal=NOT_STARTED)
    try:
        about = {"build": detail["build-id"], "status": detail["build-status"]}
        with use_case("BuildImage", **about) as line:
            end = end_build(detail, builds=clients.codebuild(), sleep=time.sleep)
            line.update(refused=end.refusal)
    finally:
        if end.is_final:
            answer_cloudformation(request, refusal=end.refusal)
