"""Executions of the lab's state machine: one for each time that a suite runs."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from traindyno.aws.client_errors import error_code
from traindyno.core.errors import TraindynoError

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient


class ExecutionUnknown(TraindynoError):
    """The lab has no execution of this name."""


class ExecutionExists(TraindynoError):
    """The lab had an execution of this name in the last 90 days, of another suite."""


class ExecutionStatus(StrEnum):
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    ABORTED = "ABORTED"
    PENDING_REDRIVE = "PENDING_REDRIVE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """``error`` and ``cause`` say why an execution failed."""

    execution_id: str
    arn: str
    status: ExecutionStatus
    started_at: datetime
    ended_at: datetime | None = None
    error: str | None = None
    cause: str | None = None

    @property
    def is_running(self) -> bool:
        return self.status in {ExecutionStatus.RUNNING, ExecutionStatus.PENDING_REDRIVE}


class Executions:
    def __init__(self, stepfunctions: "SFNClient", state_machine_arn: str) -> None:
        self._stepfunctions = stepfunctions
        self._state_machine_arn = state_machine_arn

    def start(self, execution_id: str, document: Mapping[str, Any]) -> None:
        try:
            self._stepfunctions.start_execution(
                stateMachineArn=self._state_machine_arn, name=execution_id, input=json.dumps(document)
            )
        except ClientError as error:
            if error_code(error) != "ExecutionAlreadyExists":
                raise
            raise ExecutionExists(
                f"an execution named {execution_id!r} is there already; choose another name"
            ) from error

    def describe(self, execution_id: str) -> Execution:
        try:
            found = self._stepfunctions.describe_execution(executionArn=self._arn(execution_id))
        except ClientError as error:
            if error_code(error) not in {"ExecutionDoesNotExist", "InvalidArn"}:
                raise
            raise ExecutionUnknown(
                f"the lab has no execution named {execution_id!r}; see them with: traindyno list"
            ) from error
        return _execution(found)

    def list(self, limit: int) -> Iterator[Execution]:
        """The newest first."""
        pages = self._stepfunctions.get_paginator("list_executions").paginate(
            stateMachineArn=self._state_machine_arn, PaginationConfig={"MaxItems": limit, "PageSize": min(limit, 100)}
        )
        return (_execution(found) for page in pages for found in page["executions"])

    def stop(self, execution_id: str, cause: str) -> None:
        self._stepfunctions.stop_execution(executionArn=self._arn(execution_id), error="StoppedByUser", cause=cause)

    def _arn(self, execution_id: str) -> str:
        return f"{self._state_machine_arn.replace(':stateMachine:', ':execution:')}:{execution_id}"


def _execution(found: Mapping[str, Any]) -> Execution:
    return Execution(
        execution_id=found["name"],
        arn=found["executionArn"],
        status=ExecutionStatus(found["status"]),
        started_at=found["startDate"],
        ended_at=found.get("stopDate"),
        error=found.get("error"),
        cause=found.get("cause"),
    )
