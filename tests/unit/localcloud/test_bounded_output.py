"""A job's output of any length: the file keeps its beginning and end, the stream its end."""

import random
import re
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from localcloud.sagemaker_service.host.host_processes import HostOrder, HostProcesses
from localcloud.sagemaker_service.host.supervisor import MOST_BYTES, OutputFile
from localcloud.sagemaker_service.instance_table import usable_cores
from localcloud.sagemaker_service.storage import log_shipping
from localcloud.sagemaker_service.storage.log_shipping import ship_logs

FIRST, LAST, MOST = 300, 500, 2_000
NOTE_TEXT = re.compile(r"\[traindyno: (\d+) bytes of output are left out here\]")


class Logs:
    """Keeps what is sent, as CloudWatch Logs does. ``accepts`` holds every call up until it is set."""

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


def output_file(path: Path) -> OutputFile:
    return OutputFile(path, first_bytes=FIRST, last_bytes=LAST, most_bytes=MOST)


def written(dice: random.Random, path: Path) -> bytes:
    """What was written to the file, in blocks that end in the midst of lines."""
    lines = [b"%d %s\n" % (number, b"x" * dice.randrange(40)) for number in range(dice.randrange(400))]
    output, file = b"".join(lines), output_file(path)
    begin = 0
    while begin < len(output):
        size = dice.randrange(1, 900)
        file.write(output[begin : begin + size])
        assert path.stat().st_size <= MOST
        begin += size
    return output


@pytest.mark.parametrize("seed", range(10))
def test_file_keeps_beginning_and_end_and_counts_the_rest(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "log.txt"
    output = written(random.Random(seed), path)
    kept = path.read_bytes() if path.exists() else b""
    if len(output) <= MOST:
        assert kept == output
        return
    note = NOTE_TEXT.search(kept.decode())
    assert note is not None
    beginning, end = kept[: note.start()], kept[note.end() + 1 :]
    assert len(beginning) >= FIRST
    assert output.startswith(beginning)
    assert output.endswith(end)
    assert len(end) >= LAST - 50
    assert int(note[1]) == len(output) - len(beginning) - len(end)


def test_file_of_one_endless_line_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    file = output_file(path)
    for _ in range(100):
        file.write(b"." * 777)
    kept = path.read_bytes()
    note = NOTE_TEXT.search(kept.decode())
    assert note is not None
    assert len(kept) <= MOST
    # The file has two line ends of its own, around the note.
    assert int(note[1]) == 77_700 - (len(kept) - len(note[0]) - 2)


def test_host_that_prints_for_long_fills_no_disk(tmp_path: Path) -> None:
    script = "import sys\nfor _ in range(80): sys.stdout.write('x\\n' * 524_288)\nprint('end')"
    order = HostOrder(
        host="algo-1",
        root=tmp_path,
        command=[sys.executable, "-c", script],
        environment={},
        folder=tmp_path,
        log=tmp_path / "log.txt",
        cores=usable_cores(),
    )
    hosts = HostProcesses([order], order_folder=tmp_path, grace_seconds=1)
    while (codes := hosts.wait(1)) is None:
        pass
    hosts.close()
    assert codes == {"algo-1": 0}
    assert order.log.stat().st_size <= MOST_BYTES
    assert order.log.read_bytes().endswith(b"x\nend\n")


@pytest.mark.parametrize(("most_bytes", "most_events"), [(120, 5_000), (2**20, 7)])
def test_stream_has_the_end_of_a_long_log_and_says_where_the_rest_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_bytes: int, most_events: int
) -> None:
    monkeypatch.setattr(log_shipping, "MOST_BYTES", most_bytes)
    monkeypatch.setattr(log_shipping, "MOST_EVENTS", most_events)
    path, logs = tmp_path / "log.txt", Logs()
    lines = [f"line {number}" for number in range(100)]
    path.write_text("".join(f"{line}\n" for line in lines))
    ship_logs(logs, "job", {"algo-1": path})
    note, *kept = logs.messages
    assert "the whole log is in S3" in note
    assert 7 <= len(kept) < 20
    assert kept == lines[-len(kept) :]


def test_short_log_is_sent_whole_with_its_unfinished_line(tmp_path: Path) -> None:
    path, logs = tmp_path / "log.txt", Logs()
    path.write_text("first\n\nsecond\nunfinished")
    ship_logs(logs, "job", {"algo-1": path, "algo-2": tmp_path / "absent"})
    assert logs.messages == ["first", "second", "unfinished"]


def test_logs_that_do_not_answer_hold_up_no_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(log_shipping, "FINISH_SECONDS", 0.05)
    path, logs = tmp_path / "log.txt", Logs()
    path.write_text("line\n")
    logs.accepts.clear()
    ship_logs(logs, "job", {"algo-1": path})
    assert logs.messages == []
    assert "not sent to CloudWatch Logs within 0.05 s" in caplog.text
    logs.accepts.set()
