"""A small disk for tests that fill it: one in memory, where this machine lets it be mounted."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SIZE = "1500m"


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A folder on the disk, or ``folder`` itself where none can be mounted: see ``is_small_disk``."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", folder], capture_output=True, check=False
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
    """Nothing can be written to the disk of ``folder`` meanwhile."""
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
