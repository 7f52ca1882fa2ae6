"""A small disk in memory for tests that fill it, if this machine allows the mount."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SIZE = "1500m"


@contextmanager
def small_disk(folder: Path, size: str = SIZE) -> Iterator[Path]:
    """A folder on the disk; ``folder`` itself if no disk can be mounted (see ``is_small_disk``)."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        yield folder
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def is_small_disk(folder: Path) -> bool:
    return folder.is_mount()


@contextmanager
def full_disk(folder: Path) -> Iterator[None]:
    """Keeps the disk of ``folder`` full until the context ends: nothing can be written to it."""
    filler = folder / "filler"
    try:
        with filler.open("wb", buffering=0) as file:
            for size in (2**20, 2**12, 1):
                _fill(file.write, size)
        yield
    finally:
        filler.unlink(missing_ok=True)


def _fill(write: object, size: int) -> None:
    assert callable(write)
    try:
        while write(b"\0" * size) == size:
            pass
    except OSError:
        return
