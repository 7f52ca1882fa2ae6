"""The cache folder of the command line; it may be deleted at any time."""

import os
from contextlib import suppress
from pathlib import Path


def cache_folder(name: str) -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "traindyno" / name


def read_kept(path: Path) -> str | None:
    """None where nothing was kept, or the file can't be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return None


def keep(path: Path, text: str) -> None:
    """A folder that can't be written, as in a read-only home, keeps nothing: the next command finds it out again."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(path)
