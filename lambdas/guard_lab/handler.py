"""Custom resources: CloudFormation calls it before it deletes the lab, and before it changes the
lab's settings.
"""

import time
from typing import Any

from traindyno.aws import clients
from traindyno.aws.cloudformation_answer import answer_cloudformation
from traindyno.aws.executions import Executions
from traindyno.core.lab_names import SETTINGS_RESOURCE
from traindyno.lab.end_endpoints import open_serving, remove_all
from traindyno.lab.environment import GuardEnvironment, read_environment
from traindyno.lab.guard_lab import refusal_to_delete, refusal_to_forget
from traindyno.lab.services import connect
from traindyno.lab.use_case import use_case


def handle(event: dict[str, Any], _context: object) -> None:
    # Without an answer, CloudFormation waits until its time limit; an error raised here is also in
    # the log.
    refusal: str | None = (
        "the lab could not determine whether this is safe; see the log of GuardLab"
    )
    try:
        with use_case("GuardLab", request=event["RequestType"]) as line:
            refusal = _refusal(event)
            line.update(refused=refusal)
    finally:
        answer_cloudformation(event, refusal=refusal)


def _refusal(event: dict[str, Any]) -> str | None:
    environment = read_environment(GuardEnvironment)
    if event["ResourceType"] == SETTINGS_RESOURCE:
        return refusal_to_forget(
            event, lab=environment.lab, cloudformation=clients.cloudformation()
        )
    if event["RequestType"] != "Delete":
        return None
    serving = open_serving(environment)
    now = time.time()
    refusal = refusal_to_delete(
        lab=environment.lab,
        executions=Executions(clients.stepfunctions(), environment.state_machine_arn),
        services=connect(environment),
        serving=serving,
        now=now,
    )
    if refusal is None:
        remove_all(serving)
    return refusal
