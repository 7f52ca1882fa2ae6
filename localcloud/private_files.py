"""Files and folders that other users of the machine can't read, whatever this process's umask is."""

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
    """What this process makes in the meantime is its owner's alone."""
    before = os.umask(OWNER_ONLY)
    try:
        yield
    finally:
        os.umask(before)


def make_private_folder(folder: Path, *, mark: str) -> None:
    """Makes the folder, and the rest of its path, or takes the rights of others from it; raises NotPrivate or OSError.

    A folder that others may read is changed only if it is empty or has the file ``mark``: it may be one that they need.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = folder.stat()
    if found.st_uid != os.geteuid():
        raise NotPrivate(f"it belongs to user {found.st_uid}, and this is user {os.geteuid()}")
    if not found.st_mode & OTHERS:
        return
    if any(folder.iterdir()) and not (folder / mark).exists():
        raise NotPrivate("other users can read it, and it holds files that are not the local cloud's")
    _take_from_others(folder)
    if folder.stat().st_mode & OTHERS:
        raise NotPrivate("its file system does not keep files from other users")
    tighten(folder)


def tighten(folder: Path) -> None:
    """Takes the rights of others from all that is in the folder; links are not followed."""
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place, name)
            if not path.is_symlink():
                _take_from_others(path)


def open_private(path: str, flags: int) -> int:
    """An ``opener`` of ``open``: a new file is its owner's alone, and one that exists becomes so."""
    descriptor = os.open(path, flags, 0o600)
    if os.fstat(descriptor).st_mode & OTHERS:
        os.fchmod(descriptor, 0o600)
    return descriptor


def _take_from_others(path: Path) -> None:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & OTHERS:
        path.chmod(mode & ~OTHERS)
