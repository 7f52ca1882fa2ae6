"""The files of a dataset, local or in S3."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from traindyno.core.suite import data_formats
from traindyno.core.suite.choices import DatasetFormat
from traindyno.core.suite.data_formats import DatasetFilesInvalid, format_of, is_hidden
from traindyno.core.suite.workload import Dataset
from training.errors import WorkloadError


class DataFile(Protocol):
    """``name`` is the path below the dataset's root, with slashes."""

    @property
    def name(self) -> str: ...

    def open(self) -> BinaryIO:
        """Reads a part at a time."""

    def source(self) -> str | BinaryIO:
        """What pyarrow reads from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalFile:
    name: str
    path: Path

    def open(self) -> BinaryIO:
        return self.path.open("rb")

    def source(self) -> str | BinaryIO:
        return str(self.path)


def local_files(root: Path) -> list[DataFile]:
    if root.is_file():
        return [LocalFile(name=root.name, path=root)]
    found = {path.relative_to(root).as_posix(): path for path in sorted(root.rglob("*"))}
    linked = [name for name, path in found.items() if path.is_dir() and path.is_symlink() and not is_hidden(name)]
    if linked:
        raise WorkloadError(
            f"{root} has links to folders, which are not followed: {', '.join(linked[:10])}; expected the folders in "
            "their place"
        )
    return [LocalFile(name=name, path=path) for name, path in found.items() if path.is_file()]


def split_files(files: Sequence[DataFile], dataset: Dataset, split: str, where: str) -> list[DataFile]:
    """The data files that hold ``split``. Raises WorkloadError if there are none."""
    by_name = {file.name: file for file in files}
    try:
        return [by_name[name] for name in data_formats.split_files(list(by_name), dataset, split)]
    except DatasetFilesInvalid as error:
        raise WorkloadError(f"{where}: {error}") from error


def files_format(dataset: Dataset, files: Sequence[DataFile]) -> DatasetFormat:
    return format_of(files[0].name) if dataset.format is DatasetFormat.AUTO else dataset.format
