"""The last lines of a training job's log."""

from typing import Any, Protocol

from botocore.exceptions import ClientError

from traindyno.aws.client_errors import AwsError, error_code

JOB_LOG_GROUP = "/aws/sagemaker/TrainingJobs"
LINE_COUNT = 40


class LogsClient(Protocol):
    def describe_log_streams(self, **arguments: Any) -> dict[str, Any]: ...

    def get_log_events(self, **arguments: Any) -> dict[str, Any]: ...


class LogTail:
    def __init__(self, logs: LogsClient) -> None:
        self._logs = logs

    def read(self, job_name: str) -> tuple[str, ...]:
        """Of the host that wrote last, which is where a failure shows.

        A log that can't be read costs no result: its one line then says why.
        """
        try:
            return self._read(job_name)
        except AwsError as error:
            if isinstance(error, ClientError) and error_code(error) == "ResourceNotFoundException":
                return ()  # no training job of this account has logged anything yet
            return (f"the log of {job_name} could not be read: {error}",)

    def _read(self, job_name: str) -> tuple[str, ...]:
        found = self._logs.describe_log_streams(logGroupName=JOB_LOG_GROUP, logStreamNamePrefix=f"{job_name}/")
        streams = sorted(found["logStreams"], key=lambda stream: stream.get("lastEventTimestamp", 0))
        if not streams:
            return ()
        events = self._logs.get_log_events(
            logGroupName=JOB_LOG_GROUP,
            logStreamName=streams[-1]["logStreamName"],
            startFromHead=False,
            limit=LINE_COUNT,
        )
        return tuple(event["message"].rstrip("\n") for event in events["events"])
