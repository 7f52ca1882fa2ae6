"""A job's output in CloudWatch Logs: the end of it, and where the rest is."""

import threading
from pathlib import Path
from typing import Any

import pytest

from localcloud.sagemaker_service.storage import log_shipping
from localcloud.sagemaker_service.storage.log_shipping import ship_logs


class Logs:
    """Keeps what is sent, as CloudWatch Logs does.

    ``accepts`` holds every call up until it is set.
    """

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.accepts = threading.Event()
        self.accepts.set()

    def create_log_group(self, **_: Any) -> None: ...

    def create_log_stream(self, **_: Any) -> None: ...

    def put_log_events(self, **request: Any) -> None:
        self.accepts.wait(20)
        assert len(request["logEvents"]) <= 1000
        self.messages += [event["message"] for event in request["logEvents"]]


@pytest.mark.parametrize(("most_bytes", "most_events"), [(120, 5_000), (2**20, 7)])
def test_stream_has_the_end_of_a_long_log_and_says_the_place_of_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_bytes: int, most_events: int
) -> None:
    monkeypatch.setattr(log_shipping, "MOST_BYTES", most_bytes)
    monkeypatch.setattr(log_shipping, "MOST_EVENTS", most_events)
    path = tmp_path / "log.txt"
    logs = Logs()
    lines = [f"line {number}" for number in range(100)]
    path.write_text("".join(f"{line}\n" for line in lines))
    ship_logs(logs, "job", {"algo-1": path})
    note, *kept = logs.messages
    assert "the whole log is in S3" in note
    assert 7 <= len(kept) < 20
    assert kept == lines[-len(kept) :]


def test_short_log_is_sent_whole_with_its_unfinished_line(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    logs = Logs()
    path.write_text("first\n\nsecond\nunfinished")
    ship_logs(logs, "job", {"algo-1": path, "algo-2": tmp_path / "absent"})
    assert logs.messages == ["first", "second", "unfinished"]


def test_unanswered_logs_hold_up_no_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(log_shipping, "FINISH_SECONDS", 0.05)
    path = tmp_path / "log.txt"
    logs = Logs()
    path.write_text("line\n")
    logs.accepts.clear()
    ship_logs(logs, "job", {"algo-1": path})
    assert logs.messages == []
    assert "not sent to CloudWatch Logs within 0.05 s" in caplog.text
    logs.accepts.set()
