"""Custom resource: CloudFormation calls it before it deletes the lab. It refuses while an execution runs."""

import time
from typing import Any

from traindyno.aws import clients
from traindyno.aws.cloudformation_answer import Answer, answer_cloudformation
from traindyno.aws.executions import Executions
from traindyno.lab.environment import GuardEnvironment, read_environment
from traindyno.lab.guard_lab import refusal_to_delete
from traindyno.lab.services import connect
from traindyno.lab.serving.end_endpoints import open_serving, remove_all
from traindyno.lab.use_case import use_case


def handle(event: dict[str, Any], _context: object) -> None:
    # Without an answer, CloudFormation waits until its time limit; an error raised here is also in the log.
    answer = Answer(
        is_well=False, reason="the lab could not determine whether a suite is running; see the log of GuardLab"
    )
    try:
        with use_case("GuardLab", request=event["RequestType"]) as line:
            answer = _decide(event["RequestType"])
            line.note(refused=answer.reason or None)
    finally:
        answer_cloudformation(event, answer)


def _decide(request_type: str) -> Answer:
    if request_type != "Delete":
        return Answer(is_well=True, reason="")
    environment = read_environment(GuardEnvironment)
    serving, now = open_serving(environment), time.time()
    refusal = refusal_to_delete(
        lab=environment.lab,
        executions=Executions(clients.stepfunctions(), environment.state_machine_arn),
        services=connect(environment),
        serving=serving,
        now=now,
    )
    if refusal is None:
        remove_all(serving)
    return Answer(is_well=refusal is None, reason=refusal or "")
