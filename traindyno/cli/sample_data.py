"""Sample text that every machine has: documentation and source of Python's standard library."""

import sysconfig
from pathlib import Path

from traindyno.core.errors import TraindynoError

SCHEME = "sample:"
PYTHON_STANDARD_LIBRARY = "python-standard-library"
SAMPLES = (f"{SCHEME}{PYTHON_STANDARD_LIBRARY}",)
SIZE_LIMIT_BYTES = 2**20


class SampleUnknown(TraindynoError):
    """The suite names an unknown sample."""


def is_sample(path: str) -> bool:
    return path.startswith(SCHEME)


def write_sample(path: str, folder: Path) -> Path:
    """Write the files of ``sample:<name>`` into the folder, which is made; the same machine gives the same bytes."""
    name = path.removeprefix(SCHEME)
    if name != PYTHON_STANDARD_LIBRARY:
        raise SampleUnknown(
            f"workload.dataset.path: {path!r} is not a sample; available: {SCHEME}{PYTHON_STANDARD_LIBRARY}"
        )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "text.txt").write_bytes(_standard_library_text())
    return folder


def _standard_library_text() -> bytes:
    library = Path(sysconfig.get_path("stdlib"))
    documentation = [library / "pydoc_data" / "topics.py"]
    sources = [path for path in sorted(library.glob("*.py")) if not path.name.startswith("_")]
    text = bytearray()
    for path in documentation + sources:
        if path.is_file() and len(text) < SIZE_LIMIT_BYTES:
            text += path.read_bytes() + b"\n"
    return bytes(text)
