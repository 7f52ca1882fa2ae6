"""Answers to Step Functions tasks that wait for their token."""

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from traindyno.aws.client_errors import error_code

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient

GONE = frozenset({"TaskTimedOut", "TaskDoesNotExist", "InvalidToken"})
CAUSE_LENGTH = 2000


class TaskAnswers:
    """Both answers return False if no task waits for the token: answered before, timed out, or the
    execution ended.
    """

    def __init__(self, stepfunctions: "SFNClient") -> None:
        self._stepfunctions = stepfunctions

    def succeed(self, token: str, output: Mapping[str, str]) -> bool:
        return _is_taken(
            lambda: self._stepfunctions.send_task_success(
                taskToken=token, output=json.dumps(output)
            )
        )

    def fail(self, token: str, *, error_name: str, cause: str) -> bool:
        answer = {"error": error_name, "cause": cause[:CAUSE_LENGTH]}
        return _is_taken(lambda: self._stepfunctions.send_task_failure(taskToken=token, **answer))


def _is_taken(send: Callable[[], object]) -> bool:
    try:
        send()
    except ClientError as error:
        if error_code(error) not in GONE:
            raise
        return False
    return True
