"""Writes that survive a full disk, and clean-up that no file can stop."""

import os
import shutil
from pathlib import Path
from typing import List


def write_last(path: Path, text: str) -> bool:
    """Whether the file is there, whole: it is written beside its place and renamed."""
    partial = path.with_name(path.name + ".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        descriptor = os.open(str(path.parent), os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError:
        return False
    return True


def append(path: Path, text: str) -> bool:
    """A line that was cut off by a full disk is ended, so that the next one can be read."""
    for lead in ("", "\n"):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write(lead + text)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            continue
        return True
    return False


def remove(path: Path) -> None:
    """A file or a folder; what cannot be removed stays."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(str(path), ignore_errors=True)
        return
    try:
        path.unlink()
    except OSError:
        return


def files_below(folder: Path) -> List[Path]:
    paths = (Path(place, name) for place, _, names in os.walk(str(folder)) for name in names)
    return sorted(path for path in paths if path.is_file())
