"""A script that fails on a full disk is told which one: here a disk counts as full whatever is free
on it.
"""

import errno
import json
import os
import shutil
from pathlib import Path

import pytest

from traindyno.callbacks import full_disk
from traindyno.callbacks.full_disk import full_disk_text, full_folder, is_disk_full
from traindyno.callbacks.log import StepLogger

NO_SPACE = os.strerror(errno.ENOSPC)
ADVICE = "are free: write less to it, or free space"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on a disk that counts as full."""
    monkeypatch.setattr(full_disk, "LEAST_FREE_BYTES", 2**62)
    (tmp_path / "full").mkdir()
    return tmp_path / "full"


def no_space(folder: Path) -> OSError:
    return OSError(errno.ENOSPC, NO_SPACE, str(folder / "model.pt"))


def error_of_log(folder: Path, error: BaseException) -> dict[str, str]:
    """The last line of the step log of a script that ends with ``error``."""
    StepLogger(str(folder)).failed(error)
    (log,) = folder.rglob("*.jsonl")
    line: dict[str, str] = json.loads(log.read_text().splitlines()[-1])
    return line


def test_the_folder_of_a_file_without_space_is_named(folder: Path) -> None:
    told = full_disk_text(no_space(folder), {})
    assert told.startswith(f"; the disk of {folder} is full, ")
    assert told.endswith(ADVICE)
    copied = OSError(errno.ENOSPC, NO_SPACE, "/etc/passwd", None, str(folder / "copy"))
    assert full_folder(copied, {}) == folder


@pytest.mark.parametrize(
    ("named", "is_volume"),
    [("/opt/ml", True), ("/opt/ml/model", True), ("/opt/mlflow", False), ("/dev/shm", False)],
)
def test_the_volume_of_a_job_is_named_for_its_folders_only(
    folder: Path, named: str, is_volume: bool
) -> None:
    assert folder.is_dir()
    told = full_disk_text(no_space(Path(named)), {})
    assert told.startswith(f"; the disk of {named} is full, ")
    assert ("job.volume_size_gb" in told) is is_volume


@pytest.mark.parametrize("length", [1, 2])
def test_errors_causing_each_other_are_recorded(length: int, folder: Path, tmp_path: Path) -> None:
    """An error is its own cause after ``raise error from error``.

    A full disk may be the cause of another error.
    """
    errors: list[Exception] = [no_space(folder), RuntimeError("outer")][-length:]
    for error, cause in zip(errors, errors[1:] + errors[:1], strict=True):
        error.__cause__ = cause
    assert is_disk_full(errors[-1]) is (length == 2)
    assert length == 1 or full_folder(errors[-1], {}) == folder
    assert error_of_log(tmp_path, errors[-1])["outcome"] == "user_code_error"


def test_nothing_is_said_of_disks_with_space() -> None:
    assert full_disk_text(OSError(errno.ENOENT, "no such file", "/nowhere/model.pt"), {}) == ""
    assert full_disk_text(RuntimeError("no disk at all"), {"SM_MODEL_DIR": "/nowhere"}) == ""


def test_a_file_system_without_a_size_does_not_count_as_full() -> None:
    assert shutil.disk_usage("/proc").total == 0
    assert full_disk_text(no_space(Path("/proc")), {}) == ""


def test_an_error_without_a_working_directory_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    error = OSError(errno.ENOSPC, NO_SPACE, "model.pt")
    assert full_disk_text(error, {}) == ""
    assert NO_SPACE in error_of_log(tmp_path, error)["message"]


@pytest.mark.parametrize("length", [1, 5000])
def test_the_message_of_a_failed_script_names_the_full_disk(
    length: int, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SM_OUTPUT_DIR", str(tmp_path))
    error = error_of_log(
        tmp_path, OSError(errno.ENOSPC, NO_SPACE + "!" * length, str(folder / "model.pt"))
    )
    assert error["outcome"] == "user_code_error"
    assert f"; the disk of {folder} is full, " in error["message"]
    assert error["message"].endswith(ADVICE)
    assert ADVICE in (tmp_path / "failure").read_text()
