"""Sends the hosts' logs to CloudWatch Logs, under the names that SageMaker gives them."""

import logging
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from botocore.exceptions import ClientError

LOG = logging.getLogger(__name__)
LOG_GROUP = "/aws/sagemaker/TrainingJobs"
MOST_EVENTS_PER_CALL = 1000
MOST_EVENT_CHARACTERS = 60_000


class LogClient(Protocol):
    """The part of boto3's ``logs`` client that is used here."""

    def create_log_group(self, **request: Any) -> Any: ...

    def create_log_stream(self, **request: Any) -> Any: ...

    def put_log_events(self, **request: Any) -> Any: ...


class LogShipping:
    """Sends new lines periodically. If a log can't be sent, the service's log says so once, and the job continues."""

    def __init__(
        self,
        client: LogClient,
        job_name: str,
        logs: Mapping[str, Path],
        period_seconds: float,
        *,
        log_group: str = LOG_GROUP,
    ) -> None:
        self._client = client
        self._log_group = log_group
        now = int(time.time())
        self._streams = {path: f"{job_name}/{host}-{now}" for host, path in logs.items()}
        self._read_to = dict.fromkeys(logs.values(), 0)
        self._period_seconds = period_seconds
        self._is_offered = True
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._ship, name="logs", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def finish(self) -> None:
        self._ending.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._try_to_ship(is_last=True)

    def _ship(self) -> None:
        self._try_to_create()
        while not self._ending.wait(self._period_seconds):
            self._try_to_ship(is_last=False)

    def _try_to_create(self) -> None:
        try:
            self._create_group()
            for stream in self._streams.values():
                self._client.create_log_stream(logGroupName=self._log_group, logStreamName=stream)
        except Exception as error:  # noqa: BLE001 -- a log that can't be sent is no reason to fail a job
            self._give_up(error)

    def _create_group(self) -> None:
        try:
            self._client.create_log_group(logGroupName=self._log_group)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ResourceAlreadyExistsException":
                raise

    def _try_to_ship(self, *, is_last: bool) -> None:
        if not self._is_offered:
            return
        try:
            for path, stream in self._streams.items():
                self._ship_new_lines(path, stream, is_last=is_last)
        except Exception as error:  # noqa: BLE001 -- a log that can't be sent is no reason to fail a job
            self._give_up(error)

    def _ship_new_lines(self, path: Path, stream: str, *, is_last: bool) -> None:
        if not path.exists():
            return
        with path.open("rb") as file:
            file.seek(self._read_to[path])
            text = file.read()
        whole = text if is_last else text[: text.rfind(b"\n") + 1]
        lines = [line for line in whole.decode(errors="replace").splitlines() if line.strip()]
        timestamp = time.time_ns() // 1_000_000
        for first in range(0, len(lines), MOST_EVENTS_PER_CALL):
            page = lines[first : first + MOST_EVENTS_PER_CALL]
            self._client.put_log_events(
                logGroupName=self._log_group,
                logStreamName=stream,
                logEvents=[{"timestamp": timestamp, "message": line[:MOST_EVENT_CHARACTERS]} for line in page],
            )
        self._read_to[path] += len(whole)

    def _give_up(self, error: Exception) -> None:
        self._is_offered = False
        LOG.warning("logs of %s not sent to CloudWatch Logs: %s", ", ".join(self._streams.values()), error)
