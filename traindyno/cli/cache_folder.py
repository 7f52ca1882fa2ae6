"""Where the command line keeps what it found out once: a person may delete the folder at any time."""

import os
from pathlib import Path


def cache_folder(name: str) -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "traindyno" / name
