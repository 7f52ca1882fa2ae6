"""What a process that fails after another one writes of the cause."""

import json
from pathlib import Path

import pytest

from traindyno.callbacks import StepLogger, failure
from training import crash_handling
from training.checkpoints.stop_request import StopRequest
from training.crash_handling import CrashHandler
from training.topology import read_topology


class Exited(Exception):
    """In place of the process's end."""


def exit_of_a_test(exit_code: int) -> None:
    raise Exited(exit_code)


def fail_with(error: Exception, folder: Path) -> dict[str, str]:
    """The line that rank 1 writes of its error."""
    handler = CrashHandler(StepLogger(str(folder), otherwise="internal_error"), 1, StopRequest(read_topology({})))
    with pytest.raises(Exited):
        handler._on_error(type(error), error, None)
    (log,) = folder.rglob("*.jsonl")
    (line,) = [line for line in map(json.loads, log.read_text().splitlines()) if line["kind"] == "error"]
    return dict(line)


@pytest.fixture(autouse=True)
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SM_OUTPUT_DIR", str(tmp_path))
    monkeypatch.setattr(crash_handling, "exit_now", exit_of_a_test)


def test_an_error_after_another_processs_failure_is_its_consequence(tmp_path: Path) -> None:
    failure.report_failure("out_of_memory", "rank 0: MemoryError: no memory")
    line = fail_with(OSError("the tokenizer's folder is gone"), tmp_path / "log")
    assert line["outcome"] == "out_of_memory"
    assert "rank 0: MemoryError: no memory" in line["message"]


def test_the_first_error_is_the_cause(tmp_path: Path) -> None:
    line = fail_with(ValueError("expected a number"), tmp_path / "log")
    assert line["outcome"] == "internal_error"
    assert "ValueError: expected a number" in line["message"]
    assert failure.reported_failure()[0] == "internal_error"
