"""Custom resources: CloudFormation calls it before it deletes the lab, and before it changes the lab's settings."""

import time
from typing import Any

from traindyno.aws import clients
from traindyno.aws.cloudformation_answer import Answer, answer_cloudformation
from traindyno.aws.executions import Executions
from traindyno.core.lab_names import SETTINGS_RESOURCE
from traindyno.lab.end_endpoints import open_serving, remove_all
from traindyno.lab.environment import GuardEnvironment, read_environment
from traindyno.lab.guard_lab import refusal_to_delete, refusal_to_forget
from traindyno.lab.services import connect
from traindyno.lab.use_case import use_case


def handle(event: dict[str, Any], _context: object) -> None:
    # Without an answer, CloudFormation waits until its time limit; an error raised here is also in the log.
    answer = Answer(is_well=False, reason="the lab could not determine whether this is safe; see the log of GuardLab")
    try:
        with use_case("GuardLab", request=event["RequestType"]) as line:
            answer = _decide(event)
            line.note(refused=answer.reason or None)
    finally:
        answer_cloudformation(event, answer)


def _decide(event: dict[str, Any]) -> Answer:
    environment = read_environment(GuardEnvironment)
    if event["ResourceType"] == SETTINGS_RESOURCE:
        forgetting = refusal_to_forget(event, lab=environment.lab, cloudformation=clients.cloudformation())
        return Answer(is_well=forgetting is None, reason=forgetting or "")
    if event["RequestType"] != "Delete":
        return Answer(is_well=True, reason="")
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
