"""A job's output of any length: beginning and end are kept in file and stream, and a note counts the rest."""

import random
import re
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from localcloud.sagemaker_service.host.host_processes import HostOrder, HostProcesses
from localcloud.sagemaker_service.host.supervisor import OutputFile
from localcloud.sagemaker_service.instance_table import usable_cores
from localcloud.sagemaker_service.storage import log_shipping
from localcloud.sagemaker_service.storage.log_shipping import FILE_MOST_BYTES, NOTE, LogShipping, count_output

FIRST, LAST, MOST = 300, 500, 2_000
NOTE_TEXT = re.compile(r"\[traindyno: (\d+) lines \((\d+) bytes\) of output are left out here\]")


class Logs:
    """Keeps what is sent, as CloudWatch Logs does. ``accepts`` holds every call up until it is set."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.timestamps: list[int] = []
        self.accepts = threading.Event()
        self.accepts.set()

    def create_log_group(self, **_: Any) -> None: ...

    def create_log_stream(self, **_: Any) -> None: ...

    def put_log_events(self, **request: Any) -> None:
        self.accepts.wait(20)
        assert len(request["logEvents"]) <= 1000
        self.messages += [event["message"] for event in request["logEvents"]]
        self.timestamps += [event["timestamp"] for event in request["logEvents"]]


def output_file(path: Path) -> OutputFile:
    return OutputFile(path, first_bytes=FIRST, last_bytes=LAST, most_bytes=MOST, note=NOTE)


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


@pytest.mark.parametrize("seed", range(30))
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
    assert int(note[1]) == output.count(b"\n") - beginning.count(b"\n") - end.count(b"\n")
    assert int(note[2]) == len(output) - len(beginning) - len(end)


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
    assert int(note[2]) == 77_700 - (len(kept) - len(note[0]) - 2)


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
    size = order.log.stat().st_size
    assert size <= FILE_MOST_BYTES
    output = count_output(order.log, 0, size)
    assert (output.lines, output.bytes) == (80 * 524_288 + 1, 80 * 2**20 + 4)
    assert order.log.read_bytes().endswith(b"x\nend\n")


@pytest.mark.parametrize("seed", range(30))
def test_stream_keeps_beginning_and_end_and_counts_the_rest(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest includes what the file itself has left out."""
    monkeypatch.setattr(log_shipping, "MOST_BYTES", FIRST // 2)
    monkeypatch.setattr(log_shipping, "MOST_EVENTS", events := 5)
    path, logs = tmp_path / "log.txt", Logs()
    shipping = LogShipping(logs, "job", {"algo-1": path}, 60)
    output = written(random.Random(seed), path).decode()
    shipping.start()
    shipping.finish()
    lines = output.splitlines()
    found = [number for number, message in enumerate(logs.messages) if NOTE_TEXT.fullmatch(message)]
    if not found:
        assert logs.messages == lines
        return
    (place,) = found
    note = NOTE_TEXT.fullmatch(logs.messages[place])
    assert note is not None
    beginning, end = logs.messages[:place], logs.messages[place + 1 :]
    assert beginning == lines[: len(beginning)]
    assert end == lines[len(lines) - len(end) :]
    assert 0 < len(beginning) <= events
    assert 0 < len(end) <= events
    assert int(note[1]) == len(lines) - len(beginning) - len(end)
    assert int(note[2]) == len(output) - sum(len(line) + 1 for line in (*beginning, *end))


def test_short_log_is_sent_whole_with_its_unfinished_line(tmp_path: Path) -> None:
    path, logs = tmp_path / "log.txt", Logs()
    path.write_text("first\n\nsecond\nunfinished")
    shipping = LogShipping(logs, "job", {"algo-1": path, "algo-2": tmp_path / "absent"}, 60)
    shipping.start()
    shipping.finish()
    assert logs.messages == ["first", "second", "unfinished"]


def test_lines_keep_their_order_when_the_wall_clock_is_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, logs, real = tmp_path / "log.txt", Logs(), time.time_ns
    path.write_text("before\n")
    shipping = LogShipping(logs, "job", {"algo-1": path}, 0.01)
    shipping.start()
    while not logs.timestamps:
        time.sleep(0.01)
    monkeypatch.setattr(time, "time_ns", lambda: real() - 3600 * 10**9)
    with path.open("a") as file:
        file.write("after\n")
    shipping.finish()
    assert logs.messages == ["before", "after"]
    assert logs.timestamps == sorted(logs.timestamps)


def test_logs_that_do_not_answer_hold_up_no_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(log_shipping, "FINISH_SECONDS", 0.05)
    path, logs = tmp_path / "log.txt", Logs()
    path.write_text("line\n")
    logs.accepts.clear()
    shipping = LogShipping(logs, "job", {"algo-1": path}, 60)
    shipping.start()
    shipping.finish()
    assert logs.messages == []
    assert "not sent to CloudWatch Logs: the end was not accepted within 0.05 s" in caplog.text
    logs.accepts.set()


def test_notes_are_counted_once_wherever_blocks_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note = f"{NOTE.format(lines=7, bytes=70)}\n"
    path = tmp_path / "log.txt"
    path.write_text(f"a\n{note}b\n")
    for size in range(1, len(note) + 6):
        monkeypatch.setattr("localcloud.sagemaker_service.storage.log_shipping.READ_BYTES", size)
        left_out = count_output(path, 0, path.stat().st_size)
        assert (left_out.lines, left_out.bytes) == (2 + 7, 4 + 70)
