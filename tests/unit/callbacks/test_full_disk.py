"""A script that fails on a full disk is told which one: /proc is a disk without free space on every Linux."""

import errno
import json
import os
from pathlib import Path

import pytest

from traindyno.callbacks.full_disk import full_disk_text, full_folder, is_disk_full
from traindyno.callbacks.log import StepLogger

NO_SPACE = os.strerror(errno.ENOSPC)
TOLD = "; the disk of /proc is full, 0.0 MB of 0.0 MB are free: write less to it, or free space; on AWS "


def on_proc() -> OSError:
    return OSError(errno.ENOSPC, NO_SPACE, "/proc/model.pt")


def test_the_folder_of_a_file_that_found_no_space_is_named() -> None:
    assert full_disk_text(on_proc(), {}).startswith(TOLD)
    copied = OSError(errno.ENOSPC, NO_SPACE, "/etc/passwd", None, "/proc/copy")
    assert full_folder(copied, {}) == Path("/proc")


def test_a_full_disk_may_be_the_cause_of_an_error() -> None:
    error = RuntimeError("the checkpoint could not be written")
    error.__cause__ = on_proc()
    assert is_disk_full(error)
    assert full_folder(error, {}) == Path("/proc")


def test_nothing_is_said_of_disks_that_have_space() -> None:
    assert full_disk_text(OSError(errno.ENOENT, "no such file", "/proc/model.pt"), {}) == ""
    assert full_disk_text(RuntimeError("no disk at all"), {"SM_MODEL_DIR": "/nowhere"}) == ""


@pytest.mark.parametrize("length", [1, 5000])
def test_the_message_of_a_failed_script_names_the_full_disk(
    length: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SM_OUTPUT_DIR", str(tmp_path))
    StepLogger(str(tmp_path)).failed(OSError(errno.ENOSPC, NO_SPACE + "!" * length, "/proc/model.pt"))
    (log,) = tmp_path.rglob("*.jsonl")
    error = json.loads(log.read_text().splitlines()[-1])
    assert error["outcome"] == "user_code_error"
    assert TOLD in error["message"]
    assert TOLD in (tmp_path / "failure").read_text()
