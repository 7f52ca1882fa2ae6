"""Whether the disk of a local cloud has space, and what a person is told if it has none."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from localcloud.home import HOME_VARIABLE
from localcloud.sagemaker_service.service_health import FULL_DATABASE
from traindyno.callbacks.full_disk import disk_text, has_no_space, is_disk_full, size_text
from traindyno.core.errors import TraindynoError

# A first start writes 10 MB. MiniStack writes its whole state anew when it saves it, so it needs that much again.
NEEDED_BYTES = 100_000_000
# Less than this while a start works: it will not end.
LEAST_BYTES = 4_000_000
FULL_TEXTS = (os.strerror(errno.ENOSPC), FULL_DATABASE)


class DiskFull(TraindynoError):
    """The local cloud's disk has no space; the message names the folder, what is needed, and what helps."""


def require_space(folder: Path) -> None:
    """Raises DiskFull before something is started. ``folder`` is the local cloud's, which may not exist yet."""
    if has_no_space(folder, NEEDED_BYTES):
        raise DiskFull(_text(folder))


def require_rest(folder: Path) -> None:
    """Raises DiskFull while something starts."""
    if is_full(folder):
        raise DiskFull(_text(folder))


def is_full(folder: Path) -> bool:
    return has_no_space(folder, LEAST_BYTES)


def find_full_disk(folder: Path, *, cause: str) -> str | None:
    """The sentence about the disk if it is full now, or was when a service wrote ``cause``."""
    was_full = any(text in cause for text in FULL_TEXTS)
    return _text(folder) if was_full or is_full(folder) else None


@contextmanager
def explaining_full_disk(folder: Path) -> Iterator[None]:
    """An error that has another text is explained too: services and programs fail in many ways without space."""
    try:
        yield
    except DiskFull:
        raise
    except Exception as error:
        if is_disk_full(error) or is_full(folder):
            raise DiskFull(_text(folder)) from error
        raise


def _text(folder: Path) -> str:
    return (
        f"{disk_text(folder, NEEDED_BYTES)}, and the local cloud needs {size_text(NEEDED_BYTES)} besides "
        f"the data and models of its jobs; free space on it, or set {HOME_VARIABLE} to a folder on another disk"
    )
