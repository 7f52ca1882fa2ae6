"""Sends the hosts' logs to CloudWatch Logs, under the names that SageMaker gives them.

Of a long log only the beginning and the end are sent, with a note of what is left out: the local CloudWatch Logs keeps
its events in memory and saves all of them each time. The beginning is sent while the job runs, the end when it ended.
"""

import logging
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from botocore.exceptions import ClientError

# Of a host's log file: above the largest size, only its first and its last bytes are kept.
FILE_MOST_BYTES = 64 * 2**20
FILE_FIRST_BYTES = 8 * 2**20
FILE_LAST_BYTES = 16 * 2**20
NOTE = "[traindyno: {lines} lines ({bytes} bytes) of output are left out here]"
NOTE_LINE = re.compile(rb"\[traindyno: (\d+) lines \((\d+) bytes\) of output are left out here\]\n")
READ_BYTES = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    lines: int
    bytes: int

    def note(self) -> str:
        return NOTE.format(lines=self.lines, bytes=self.bytes)


def count_output(path: Path, begin: int, end: int) -> LeftOut:
    """The output of this part of a log file, with the output that the note in the file stands for."""
    lines, size, previous = 0, end - begin, b""
    with path.open("rb") as file:
        for block in _blocks(file, begin, end):
            lines += block.count(b"\n")
            for note in NOTE_LINE.finditer(previous + block):
                if note.end() > len(previous):
                    lines += int(note[1]) - 1
                    size += int(note[2]) - len(note[0])
            previous = (previous + block)[-200:]
    return LeftOut(lines=lines, bytes=size)


def _blocks(file: BinaryIO, begin: int, end: int) -> Iterator[bytes]:
    file.seek(begin)
    while begin < end and (block := file.read(min(READ_BYTES, end - begin))):
        begin += len(block)
        yield block


LOG = logging.getLogger(__name__)
LOG_GROUP = "/aws/sagemaker/TrainingJobs"
MOST_EVENTS_PER_CALL = 1000
MOST_EVENT_CHARACTERS = 60_000
# Of the beginning of a log, and again of its end.
MOST_EVENTS = 2_500
MOST_BYTES = 512 * 2**10
# A CloudWatch Logs that does not answer must not keep a job from its end.
FINISH_SECONDS = 10.0


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
        self._events_left = dict.fromkeys(logs.values(), MOST_EVENTS)
        self._notes: list[str] = []
        self._latest_ms = 0
        self._period_seconds = period_seconds
        self._is_offered = True
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._ship, name="logs", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def note(self, text: str) -> None:
        """Adds a line of the service itself to each stream."""
        self._notes.append(f"[traindyno: {text}]")

    def finish(self) -> None:
        """Sends what remains, for a bounded time."""
        self._ending.set()
        if self._thread.ident is None:
            return
        self._thread.join(FINISH_SECONDS)
        if self._thread.is_alive():
            self._give_up(TimeoutError(f"the end was not accepted within {FINISH_SECONDS:g} s"))

    def _ship(self) -> None:
        self._try_to_create()
        while not self._ending.wait(self._period_seconds):
            self._try_to_ship()
        self._try_to_ship(is_last=True)

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

    def _try_to_ship(self, *, is_last: bool = False) -> None:
        if not self._is_offered:
            return
        try:
            notes, self._notes = [note.encode() for note in self._notes], []
            for path in self._streams:
                self._send(path, notes)
                if path.exists():
                    self._ship_beginning(path)
                    if is_last:
                        self._ship_end(path)
        except Exception as error:  # noqa: BLE001 -- a log that can't be sent is no reason to fail a job
            self._give_up(error)

    def _ship_beginning(self, path: Path) -> None:
        begin = self._read_to[path]
        text = _read(path, begin, MOST_BYTES - begin)
        lines = text[: text.rfind(b"\n") + 1].splitlines(keepends=True)[: self._events_left[path]]
        self._send(path, lines)
        self._read_to[path] += sum(map(len, lines))
        self._events_left[path] -= len(lines)

    def _ship_end(self, path: Path) -> None:
        begin, size = self._read_to[path], path.stat().st_size
        last = max(size - MOST_BYTES, begin)
        lines = _read(path, last, MOST_BYTES).splitlines(keepends=True)
        if last > begin and len(lines) > 1:
            del lines[0]  # a part of a line
        kept = lines[-MOST_EVENTS:]
        end = size - sum(map(len, kept))
        if end > begin:
            self._send(path, [count_output(path, begin, end).note().encode()])
        self._send(path, kept)

    def _send(self, path: Path, lines: Sequence[bytes]) -> None:
        messages = [line.decode(errors="replace").rstrip("\r\n")[:MOST_EVENT_CHARACTERS] for line in lines]
        # CloudWatch Logs sorts by the time: lines must keep their order when the wall clock is set back.
        self._latest_ms = max(self._latest_ms, time.time_ns() // 1_000_000)
        for page in _pages([message for message in messages if message.strip()]):
            self._client.put_log_events(
                logGroupName=self._log_group,
                logStreamName=self._streams[path],
                logEvents=[{"timestamp": self._latest_ms, "message": message} for message in page],
            )

    def _give_up(self, error: Exception) -> None:
        self._is_offered = False
        LOG.warning("logs of %s not sent to CloudWatch Logs: %s", ", ".join(self._streams.values()), error)


def _read(path: Path, begin: int, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(begin)
        return file.read(size)


def _pages(messages: Sequence[str]) -> Iterable[Sequence[str]]:
    for first in range(0, len(messages), MOST_EVENTS_PER_CALL):
        yield messages[first : first + MOST_EVENTS_PER_CALL]
