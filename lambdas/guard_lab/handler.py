"""Custom resource: CloudFormation asks before it deletes the lab. Refused while a suite is in flight."""

import os
from typing import Any

from traindyno.aws import clients
from traindyno.aws.cloudformation_answer import Answer, answer_cloudformation
from traindyno.aws.executions import Executions
from traindyno.lab.guard_lab import refusal_to_delete
from traindyno.store.attempt_rows import AttemptRows


def handle(event: dict[str, Any], _context: object) -> None:
    # Without any answer, CloudFormation would wait for its whole time limit; what is raised here is in the log too.
    answer = Answer(
        is_well=False, reason="the lab could not be asked whether a suite is in flight; see the guard's log"
    )
    try:
        answer = _decide(event["RequestType"])
    finally:
        answer_cloudformation(event, answer)


def _decide(request_type: str) -> Answer:
    if request_type != "Delete":
        return Answer(is_well=True, reason="")
    refusal = refusal_to_delete(
        lab=os.environ["LAB"],
        executions=Executions(clients.stepfunctions(), os.environ["STATE_MACHINE_ARN"]),
        attempts=AttemptRows(clients.table(os.environ["TABLE"])),
    )
    return Answer(is_well=refusal is None, reason=refusal or "")
