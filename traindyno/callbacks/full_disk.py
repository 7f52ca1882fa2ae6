"""Which disk is full, in one sentence for a person. Runs on Python 3.8 (frozen images)."""

import contextlib
import errno
import os
import shutil
from pathlib import Path
from typing import Iterator, Mapping, Optional

from traindyno.core.step_log.line import CHECKPOINTS_VARIABLE, DIRECTORY_VARIABLE

LEAST_FREE_BYTES = 2**20  # with less, the next write fails
# The folders of a job that a script writes to; one of them may be on a disk of its own, as /dev/shm
# is.
FOLDER_VARIABLES = (
    "SM_MODEL_DIR",
    "SM_OUTPUT_DATA_DIR",
    "SM_OUTPUT_DIR",
    CHECKPOINTS_VARIABLE,
    DIRECTORY_VARIABLE,
    "HF_HOME",
    "TMPDIR",
    "HOME",
)
OTHER_FOLDERS = (".", "/tmp", "/dev/shm")  # noqa: S108
# SageMaker mounts the volume of a job here.
VOLUME = Path("/opt/ml")


def is_disk_full(error: Optional[BaseException]) -> bool:
    """Whether a full disk is the error or its cause."""
    return any(map(_says_full, _causes(error)))


def full_disk_text(error: BaseException, environment: Mapping[str, str] = os.environ) -> str:
    """Text about a job's full folder, ``; the disk of /opt/ml/model is full, …``; empty without
    one.
    """
    full = full_folder(error, environment)
    if full is None:
        return ""
    hint = "; on AWS job.volume_size_gb is its size" if VOLUME in (full, *full.parents) else ""
    with contextlib.suppress(OSError):
        return "; {}: write less to it, or free space{}".format(disk_text(full), hint)
    return ""


def full_folder(
    error: BaseException, environment: Mapping[str, str] = os.environ
) -> Optional[Path]:
    """A folder on a disk that is full now: the one that ``error`` names, or else one that a job
    writes to.

    Errors of compiled code, such as torch.save's, don't say that a disk was full.
    """
    for folder in _folders(error, environment):
        with contextlib.suppress(OSError):  # the working directory may be gone
            if has_no_space(folder.absolute()):
                return folder.absolute()
    return None


def disk_text(folder: Path) -> str:
    """The state of a disk that was too full, by a folder on it."""
    disk = shutil.disk_usage(existing(folder))
    if not disk.total:
        return "the disk of {} was full, its size is unknown".format(folder)
    state = "is full" if disk.free < LEAST_FREE_BYTES else "was full"
    return "the disk of {} {}, {} of {} are free".format(
        folder, state, size_text(disk.free), size_text(disk.total)
    )


def has_no_space(folder: Path) -> bool:
    """False also for a file system that does not say how large it is, as /proc and some of FUSE: it
    reports 0.
    """
    disk = shutil.disk_usage(existing(folder))
    return disk.total > 0 and disk.free < LEAST_FREE_BYTES


def size_text(count: int) -> str:
    return "{:,.1f} GB".format(count / 1e9) if count >= 1e9 else "{:,.1f} MB".format(count / 1e6)


def existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    return next((path for path in (folder, *folder.absolute().parents) if path.is_dir()), Path("/"))


def _folders(error: BaseException, environment: Mapping[str, str]) -> Iterator[Path]:
    for cause in filter(_says_full, _causes(error)):
        names = (cause.filename2, cause.filename) if isinstance(cause, OSError) else ()
        yield from (Path(name).parent for name in names if isinstance(name, str))
    for folder in (*filter(None, map(environment.get, FOLDER_VARIABLES)), *OTHER_FOLDERS):
        if os.access(folder, os.W_OK):  # a read-only disk has no free space either
            yield Path(folder)


def _says_full(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def _causes(error: Optional[BaseException]) -> Iterator[BaseException]:
    """The error, its cause, and so on, each once: after ``raise error from error`` it is its own
    cause.
    """
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__
