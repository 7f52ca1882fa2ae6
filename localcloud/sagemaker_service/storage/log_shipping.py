"""Sends the end of each host's log to CloudWatch Logs, under the name that SageMaker gives it.

The local CloudWatch Logs keeps its events in memory and saves all of them each time, so the
beginning of a long log is in S3 only.
"""

import logging
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

LOG = logging.getLogger(__name__)
LOG_GROUP = "/aws/sagemaker/TrainingJobs"
MOST_EVENTS_PER_CALL = 1000
MOST_EVENT_CHARACTERS = 60_000
MOST_EVENTS = 5_000
MOST_BYTES = 2**20
# A CloudWatch Logs that does not answer must not keep a job from its end.
FINISH_SECONDS = 10.0


def ship_logs(client: Any, job_name: str, logs: Mapping[str, Path]) -> None:
    """Sends the log of each host to CloudWatch Logs, by boto3's client of it.

    If they can't be sent, the service's log says so, and the job ends without them.
    """
    thread = threading.Thread(
        target=_try_to_ship, args=(client, job_name, logs), name="logs", daemon=True
    )
    thread.start()
    thread.join(FINISH_SECONDS)
    if thread.is_alive():
        LOG.warning("logs of %s not sent to CloudWatch Logs within %g s", job_name, FINISH_SECONDS)


def _try_to_ship(client: Any, job_name: str, logs: Mapping[str, Path]) -> None:
    now_ms = time.time_ns() // 1_000_000
    try:
        _create_group(client)
        for host, path in logs.items():
            stream = {
                "logGroupName": LOG_GROUP,
                "logStreamName": f"{job_name}/{host}-{now_ms // 1000}",
            }
            client.create_log_stream(**stream)
            messages = _last_lines(path) if path.exists() else []
            for first in range(0, len(messages), MOST_EVENTS_PER_CALL):
                page = messages[first : first + MOST_EVENTS_PER_CALL]
                events = [{"timestamp": now_ms, "message": message} for message in page]
                client.put_log_events(**stream, logEvents=events)
    except Exception as error:  # noqa: BLE001 -- a log that can't be sent is no reason to fail a job
        LOG.warning("logs of %s not sent to CloudWatch Logs: %s", job_name, error)


def _create_group(client: Any) -> None:
    try:
        client.create_log_group(logGroupName=LOG_GROUP)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceAlreadyExistsException":
            raise


def _last_lines(path: Path) -> list[str]:
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(size - MOST_BYTES, 0))
        lines = file.read().splitlines()
    if size > MOST_BYTES and len(lines) > 1:
        del lines[0]  # a part of a line
    texts = [line.decode(errors="replace")[:MOST_EVENT_CHARACTERS] for line in lines[-MOST_EVENTS:]]
    is_whole = size <= MOST_BYTES and len(lines) <= MOST_EVENTS
    note = [] if is_whole else ["[traindyno: the whole log is in S3, below the job's output path]"]
    return note + [text for text in texts if text.strip()]
