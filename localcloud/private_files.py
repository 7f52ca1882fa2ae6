"""Folders and files that only their owner can read."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

OWNER_ONLY = 0o077  # the umask
OTHERS = stat.S_IRWXG | stat.S_IRWXO


class NotPrivate(Exception):
    """The folder can't be made the owner's alone; the text is the reason."""


@contextmanager
def owner_only() -> Iterator[None]:
    """Makes the files that this process creates in the meantime its owner's alone."""
    before = os.umask(OWNER_ONLY)
    try:
        yield
    finally:
        os.umask(before)


def make_private_folder(folder: Path) -> None:
    """Makes the folder, and the rest of its path, or takes the rights of others from an empty one.

    Raises NotPrivate or OSError. Others may need what is in a folder that they can read.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    status = folder.stat()
    if status.st_uid != os.geteuid():
        raise NotPrivate(f"it belongs to user {status.st_uid}, and this is user {os.geteuid()}")
    if not status.st_mode & OTHERS:
        return
    if any(folder.iterdir()):
        raise NotPrivate("other users can read it, and it is not empty")
    folder.chmod(0o700)
    if folder.stat().st_mode & OTHERS:
        raise NotPrivate("its file system does not keep files from other users")


def open_private(path: str, flags: int) -> int:
    """Opens a file that only its owner can read, as an ``opener`` of ``open``.

    A file that exists loses the rights of others.
    """
    descriptor = os.open(path, flags, 0o600)
    if os.fstat(descriptor).st_mode & OTHERS:
        os.fchmod(descriptor, 0o600)
    return descriptor
