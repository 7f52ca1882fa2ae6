"""The training code that is installed beside the command line, its digest, and what is kept of its
findings.
"""

import hashlib
import os
from contextlib import suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

LIBRARIES = ("torch", "transformers")


def cache_folder(name: str) -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "traindyno" / name


def read_kept(path: Path) -> str | None:
    """Read a kept finding; None where nothing was kept, or the file can't be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return None


def keep(path: Path, text: str) -> None:
    """A folder that can't be written, as in a read-only home, keeps nothing: the next command finds
    it out again.
    """
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(path)


def missing_libraries() -> list[str]:
    return [name for name in LIBRARIES if find_spec(name) is None]


def has_training_code() -> bool:
    return find_spec("training") is not None


def training_folder() -> Path:
    spec: Any = find_spec("training")
    return Path(spec.origin).parent


def training_code_digest() -> str:
    """64 hexadecimal digits of the code and its libraries' versions: a change of any makes kept
    findings invalid.
    """
    digest = hashlib.sha256()
    for path in sorted(training_folder().rglob("*.py")):
        digest.update(path.read_bytes())
    for name in LIBRARIES:
        digest.update(f"{name} {version(name)}".encode())
    return digest.hexdigest()
