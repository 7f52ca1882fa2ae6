"""The last lines of a training job's log."""

from collections.abc import Iterable
from typing import Any, Protocol

from botocore.exceptions import ClientError

from traindyno.aws.client_errors import AwsError, error_code
from traindyno.core.jobs.journal_format import ERROR, INSTEAD_OF_ERROR, RUN_LINE

JOB_LOG_GROUP = "/aws/sagemaker/TrainingJobs"
LINE_COUNT = 40
# As many lines as one answer holds: lines of other runs may follow a run's own.
SHARED_LINE_COUNT = 10_000


class LogsClient(Protocol):
    def describe_log_streams(self, **arguments: Any) -> dict[str, Any]: ...

    def get_log_events(self, **arguments: Any) -> dict[str, Any]: ...


class LogTail:
    def __init__(self, logs: LogsClient) -> None:
        self._logs = logs

    def read(
        self, job_name: str, shared_by: str | None = None, host: str | None = None
    ) -> tuple[str, ...]:
        """The last lines of the host that wrote last, because a failure shows there, or of
        ``host``. With ``shared_by``, only lines of this run of a job that carried several. One line
        has the reason if the log can't be read.
        """
        prefix = f"{job_name}/{host}-" if host else f"{job_name}/"
        try:
            if shared_by is None:
                return self._read(prefix, LINE_COUNT)
            return _own_lines(self._read(prefix, SHARED_LINE_COUNT), shared_by)[-LINE_COUNT:]
        except AwsError as error:
            if isinstance(error, ClientError) and error_code(error) == "ResourceNotFoundException":
                return ()  # nothing has been logged there yet
            return (f"the log {JOB_LOG_GROUP} {prefix} could not be read: {error}",)

    def _read(self, prefix: str, line_count: int) -> tuple[str, ...]:
        description = self._logs.describe_log_streams(
            logGroupName=JOB_LOG_GROUP, logStreamNamePrefix=prefix
        )
        streams = sorted(
            description["logStreams"], key=lambda stream: stream.get("lastEventTimestamp", 0)
        )
        if not streams:
            return ()
        stream = streams[-1]["logStreamName"]
        events = self._logs.get_log_events(
            logGroupName=JOB_LOG_GROUP, logStreamName=stream, startFromHead=False, limit=line_count
        )
        return tuple(event["message"].rstrip("\n") for event in events["events"])


def _own_lines(lines: Iterable[str], run_id: str) -> tuple[str, ...]:
    """What the run wrote into its job's log, as it wrote it."""
    prefix = RUN_LINE.format(run_id)
    return tuple(
        line.removeprefix(prefix).replace(INSTEAD_OF_ERROR, ERROR)
        for line in lines
        if line.startswith(prefix)
    )
