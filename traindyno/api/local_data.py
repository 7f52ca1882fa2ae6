"""A suite's data, where they are on this machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from traindyno.api.local_paths import find_local
from traindyno.api.sample_data import is_sample, why_no_sample, write_sample

#: A larger file is not read whole: its examples are asked for.
MOST_DATA_BYTES = 2**28
MOST_DATA_FILES = 50_000


@contextmanager
def local_data(path: str, folder: Path) -> Iterator[Path | None]:
    """The file or folder of this machine; None for data elsewhere."""
    if not is_sample(path):
        yield find_local(path, folder)
    elif why_no_sample(path) is not None:
        yield None
    else:
        with TemporaryDirectory() as beside:
            yield write_sample(path, Path(beside) / "sample")


def is_small(root: Path) -> bool:
    """Whether the data of a folder are so few that they are read whole; a large one is not listed
    to its end.
    """
    size = 0
    for number, path in enumerate(chain([root], root.rglob("*"))):
        size += path.stat().st_size if path.is_file() else 0
        if size > MOST_DATA_BYTES or number > MOST_DATA_FILES:
            return False
    return True
