"""Executions of a lab's state machine."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from botocore.exceptions import ClientError

from traindyno.aws.client_errors import error_code
from traindyno.core.documents.problems import shown
from traindyno.core.errors import TraindynoError

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient

NAME_CHARACTERS = 80
# Step Functions takes more characters, but the name is also in tags, keys and pages.
EXECUTION_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_-]{{0,{NAME_CHARACTERS - 1}}}")
EXECUTION_NAME_RULE = (
    f"1 to {NAME_CHARACTERS} letters, digits, hyphens and underscores that begin with a letter or "
    "digit"
)
RUNNING: Literal["RUNNING"] = "RUNNING"
UNSUCCESSFUL = {"FAILED", "TIMED_OUT", "ABORTED"}


class ExecutionUnknown(TraindynoError):
    """The lab has no execution of this name, or it ended more than 90 days ago and Step Functions
    has deleted it.
    """


class ExecutionNameRefused(TraindynoError):
    """No execution can be started under this name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """Times are epoch seconds.

    ``error`` and ``cause`` are set if it failed or was aborted with a reason.
    """

    execution_id: str
    status: str
    started_at: float
    ended_at: float | None
    error: str | None
    cause: str | None

    @property
    def is_running(self) -> bool:
        return self.status == RUNNING


def check_execution_name(name: str) -> None:
    """Raises ExecutionNameRefused."""
    if not EXECUTION_NAME.fullmatch(name):
        raise ExecutionNameRefused(
            f"got {shown(name)} as the name of an execution, expected {EXECUTION_NAME_RULE}"
        )


def name_taken(execution_id: str) -> ExecutionNameRefused:
    return ExecutionNameRefused(
        f"an execution {execution_id} exists already, and its name is kept for 90 days; expected "
        "another name"
    )


class Executions:
    def __init__(self, stepfunctions: "SFNClient", state_machine_arn: str) -> None:
        self._stepfunctions = stepfunctions
        self._state_machine_arn = state_machine_arn

    def start(self, execution_id: str, suite: Mapping[str, Any]) -> None:
        """Safe to repeat with the same suite while it runs. Raises ExecutionNameRefused."""
        check_execution_name(execution_id)
        try:
            self._stepfunctions.start_execution(
                stateMachineArn=self._state_machine_arn, name=execution_id, input=json.dumps(suite)
            )
        except ClientError as error:
            if error_code(error) != "ExecutionAlreadyExists":
                raise
            raise name_taken(execution_id) from error

    def describe(self, execution_id: str) -> Execution:
        try:
            description: Mapping[str, Any] = self._stepfunctions.describe_execution(
                executionArn=self._arn(execution_id)
            )
        except ClientError as error:
            if error_code(error) == "ExecutionDoesNotExist":
                raise ExecutionUnknown(
                    f"no execution {execution_id} of {self._state_machine_arn}"
                ) from error
            raise
        return _read(description)

    def list_latest(self, count: int) -> Iterator[Execution]:
        """At most ``count`` executions, the latest first."""
        pages = self._stepfunctions.get_paginator("list_executions").paginate(
            stateMachineArn=self._state_machine_arn, PaginationConfig={"MaxItems": count}
        )
        return (_read(row) for page in pages for row in page["executions"])

    def list_running(self) -> Iterator[str]:
        """Names of the running executions; empty if the state machine no longer exists."""
        pages = self._stepfunctions.get_paginator("list_executions").paginate(
            stateMachineArn=self._state_machine_arn, statusFilter=RUNNING
        )
        try:
            yield from (row["name"] for page in pages for row in page["executions"])
        except ClientError as error:
            if error_code(error) != "StateMachineDoesNotExist":
                raise

    def stop(self, execution_id: str, *, reason: str) -> None:
        self._stepfunctions.stop_execution(
            executionArn=self._arn(execution_id), error="StoppedByUser", cause=reason
        )

    def _arn(self, execution_id: str) -> str:
        return f"{self._state_machine_arn.replace(':stateMachine:', ':execution:')}:{execution_id}"


def _read(description: Mapping[str, Any]) -> Execution:
    ended = description.get("stopDate")
    return Execution(
        execution_id=description["name"],
        status=description["status"],
        started_at=description["startDate"].timestamp(),
        ended_at=ended.timestamp() if ended else None,
        error=description.get("error"),
        cause=description.get("cause"),
    )
