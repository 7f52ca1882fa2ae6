"""The logs that SageMaker wrote for one lab: they are in no stack, so they stay when the lab is deleted.

The log groups of training and transform jobs belong to the whole account; only the streams in them are a lab's own.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from traindyno.aws.client_errors import error_code
from traindyno.aws.log_tail import JOB_LOG_GROUP
from traindyno.core.lab_names import LAB_NAME, LAB_NAME_RULE, jobs_prefix
from traindyno.sagemaker.serving.serving_description import ENDPOINT_LOG_GROUP, TRANSFORM_LOG_GROUP

SHARED_GROUPS = (JOB_LOG_GROUP, TRANSFORM_LOG_GROUP)
# The numbers of days that PutRetentionPolicy accepts.
RETENTION_DAYS = (
    *(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogGroup:
    """If ``retention_days`` is None, its events never expire."""

    name: str
    retention_days: int | None

    def keeps_longer_than(self, days: int) -> bool:
        return self.retention_days is None or self.retention_days > days


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStream:
    group: str
    name: str


class LabLogs:
    def __init__(self, logs: Any, lab: str) -> None:
        """Raises ValueError for a text that is no lab's name: its prefix could be that of other labs' jobs."""
        if not LAB_NAME.fullmatch(lab):
            raise ValueError(f"{lab!r} is not the name of a lab: expected {LAB_NAME_RULE}")
        self._logs = logs
        self._prefix = jobs_prefix(lab)

    def streams(self) -> list[LogStream]:
        """The log streams of the lab's jobs in the shared groups."""
        return [LogStream(group=group, name=name) for group in SHARED_GROUPS for name in self._stream_names(group)]

    def own_groups(self) -> list[LogGroup]:
        """The log groups of the lab's endpoints."""
        return [*self._groups(f"{ENDPOINT_LOG_GROUP}/{self._prefix}")]

    def shared_groups(self) -> list[LogGroup]:
        return [found for name in SHARED_GROUPS for found in self._groups(name) if found.name == name]

    def delete_stream(self, stream: LogStream) -> None:
        self._delete("delete_log_stream", logGroupName=stream.group, logStreamName=stream.name)

    def delete_group(self, group: LogGroup) -> None:
        """Delete the log group of an endpoint."""
        self._delete("delete_log_group", logGroupName=group.name)

    def expire(self, group: LogGroup, days: int) -> None:
        self._logs.put_retention_policy(logGroupName=group.name, retentionInDays=days)

    def _stream_names(self, group: str) -> Iterator[str]:
        pages = self._logs.get_paginator("describe_log_streams")
        try:
            for page in pages.paginate(logGroupName=group, logStreamNamePrefix=self._prefix):
                yield from (found["logStreamName"] for found in page["logStreams"])
        except ClientError as error:
            if error_code(error) != "ResourceNotFoundException":
                raise

    def _groups(self, prefix: str) -> Iterator[LogGroup]:
        for page in self._logs.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=prefix):
            for found in page["logGroups"]:
                yield LogGroup(name=found["logGroupName"], retention_days=found.get("retentionInDays"))

    def _delete(self, operation: str, **named: str) -> None:
        """What is already deleted counts as deleted, so that an interrupted command can be repeated."""
        try:
            getattr(self._logs, operation)(**named)
        except ClientError as error:
            if error_code(error) != "ResourceNotFoundException":
                raise
