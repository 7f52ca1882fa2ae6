"""The container's training code where it is installed beside the command line: its folder and its digest."""

import hashlib
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

LIBRARIES = ("torch", "transformers")


def missing_libraries() -> list[str]:
    return [name for name in LIBRARIES if find_spec(name) is None]


def has_training_code() -> bool:
    return find_spec("training") is not None


def training_folder() -> Path:
    found: Any = find_spec("training")
    return Path(found.origin).parent


def training_code_digest() -> str:
    """64 hexadecimal digits of the code and its libraries' versions: a change of any makes kept findings invalid."""
    digest = hashlib.sha256()
    for path in sorted(training_folder().rglob("*.py")):
        digest.update(path.read_bytes())
    for name in LIBRARIES:
        digest.update(f"{name} {version(name)}".encode())
    return digest.hexdigest()
