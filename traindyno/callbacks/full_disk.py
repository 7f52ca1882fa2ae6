"""Which disk is full, in one sentence for a person. Runs on Python 3.8 (frozen images)."""

import errno
import os
import shutil
from pathlib import Path
from typing import Iterator, List, Mapping, Optional

from traindyno.core.step_log.line import CHECKPOINTS_VARIABLE, DIRECTORY_VARIABLE

LEAST_FREE_BYTES = 2**20  # with less, the next write fails
# The folders of a job that a script writes to; one of them may be on a disk of its own, as /dev/shm is.
FOLDER_VARIABLES = (
    *("SM_MODEL_DIR", "SM_OUTPUT_DATA_DIR", "SM_OUTPUT_DIR", CHECKPOINTS_VARIABLE, DIRECTORY_VARIABLE),
    *("HF_HOME", "TMPDIR", "HOME"),
)
OTHER_FOLDERS = (".", "/tmp", "/dev/shm")  # noqa: S108


def is_disk_full(error: Optional[BaseException]) -> bool:
    """Whether a full disk is the error or its cause."""
    if error is None:
        return False
    return (isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)) or is_disk_full(error.__cause__)


def full_disk_text(error: BaseException, environment: Mapping[str, str] = os.environ) -> str:
    """``; the disk of /opt/ml/model is full, …`` about a job's ``full_folder``; empty without one."""
    full = full_folder(error, environment)
    if full is None:
        return ""
    return "; {}: write less to it, or free space; on AWS job.volume_size_gb is its size".format(disk_text(full))


def full_folder(error: BaseException, environment: Mapping[str, str] = os.environ) -> Optional[Path]:
    """A folder on a disk that is full now: the one that ``error`` names, or else one that a job writes to.

    Errors of compiled code, such as torch.save's, don't say that a disk was full.
    """
    return next((folder for folder in _folders(error, environment) if has_no_space(folder)), None)


def disk_text(folder: Path, needed_bytes: int = LEAST_FREE_BYTES) -> str:
    """The state of a disk that was too full, by a folder on it."""
    disk = shutil.disk_usage(existing(folder))
    state = "has too little space" if disk.free < needed_bytes else "was full"
    if disk.free < LEAST_FREE_BYTES:
        state = "is full"
    return "the disk of {} {}, {} of {} are free".format(folder, state, size_text(disk.free), size_text(disk.total))


def has_no_space(folder: Path, least_free_bytes: int = LEAST_FREE_BYTES) -> bool:
    return shutil.disk_usage(existing(folder)).free < least_free_bytes


def size_text(count: int) -> str:
    return "{:,.1f} GB".format(count / 1e9) if count >= 1e9 else "{:,.1f} MB".format(count / 1e6)


def existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    return next((each for each in (folder, *folder.absolute().parents) if each.is_dir()), Path("/"))


def _folders(error: BaseException, environment: Mapping[str, str]) -> Iterator[Path]:
    yield from _named_by(error)
    for folder in (*filter(None, map(environment.get, FOLDER_VARIABLES)), *OTHER_FOLDERS):
        if os.access(folder, os.W_OK):  # a read-only disk has no free space either
            yield Path(folder).absolute()


def _named_by(error: Optional[BaseException]) -> List[Path]:
    if error is None:
        return []
    names = (error.filename2, error.filename) if is_disk_full(error) and isinstance(error, OSError) else ()
    return [Path(name).absolute().parent for name in names if isinstance(name, str)] + _named_by(error.__cause__)
