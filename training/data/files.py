"""The files of a dataset, local or in S3: which belong to a split, and what format they are in."""

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Protocol

from traindyno.core.suite.suite import Dataset, DatasetFormat
from training.errors import WorkloadError

FORMATS = {
    ".csv": DatasetFormat.CSV,
    ".tsv": DatasetFormat.CSV,
    ".json": DatasetFormat.JSON,
    ".jsonl": DatasetFormat.JSON,
    ".parquet": DatasetFormat.PARQUET,
}
WHOLE_DATASET = "train"


class DataFile(Protocol):
    """``name`` is the path below the dataset's root, with slashes."""

    @property
    def name(self) -> str: ...

    def read(self) -> bytes: ...

    def source(self) -> str | BytesIO:
        """What pyarrow reads from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalFile:
    name: str
    path: Path

    def read(self) -> bytes:
        return self.path.read_bytes()

    def source(self) -> str | BytesIO:
        return str(self.path)


def local_files(root: Path) -> list[DataFile]:
    if root.is_file():
        return [LocalFile(name=root.name, path=root)]
    paths = sorted(path for path in root.rglob("*") if path.is_file())
    return [LocalFile(name=path.relative_to(root).as_posix(), path=path) for path in paths]


def split_files(files: Sequence[DataFile], split: str, where: str) -> list[DataFile]:
    """Those named for the split (``train.csv``, ``train-00000-of-00002.parquet``, ``train/…``); or, for train, all."""
    visible = [file for file in files if not file.name.rsplit("/", 1)[-1].startswith((".", "_"))]
    if not visible:
        raise WorkloadError(f"the dataset at {where} holds no files")
    named = [file for file in visible if _is_of_split(file.name, split)]
    if not named and split != WHOLE_DATASET:
        found = ", ".join(file.name for file in visible[:10])
        raise WorkloadError(f"no file of the dataset belongs to the split {split!r}; its files are {found}")
    return named or visible


def _is_of_split(name: str, split: str) -> bool:
    folder, _, base = name.rpartition("/")
    return folder.split("/")[0] == split or base.split(".")[0].split("-")[0] == split


def files_format(dataset: Dataset, files: Sequence[DataFile]) -> DatasetFormat:
    if dataset.format is not DatasetFormat.AUTO:
        return dataset.format
    found = {FORMATS.get(Path(file.name).suffix.lower(), DatasetFormat.TEXT) for file in files}
    return found.pop() if len(found) == 1 else DatasetFormat.TEXT
